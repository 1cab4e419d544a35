package repo

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Git runs git in the repository, and returns what it prints.
func (r *Repo) Git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.Root
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return text, err
}
