package examples

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	anchor  = regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// notInAnchors is what GitHub leaves out of the anchor of a heading.
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

func TestAnchorsLeadToHeadings(t *testing.T) {
	texts := pages(t)
	for page, text := range texts {
		for _, found := range anchor.FindAllStringSubmatch(text, -1) {
			target := page
			if found[1] != "" {
				target = filepath.Join(filepath.Dir(page), found[1])
			}
			if !slices.Contains(anchors(texts[target]), found[2]) {
				t.Errorf("%s: %s has no heading #%s", page, target, found[2])
			}
		}
	}
}

// anchors returns those of the headings of a page.
func anchors(page string) (found []string) {
	for _, line := range heading.FindAllStringSubmatch(page, -1) {
		text := notInAnchors.ReplaceAllString(strings.ToLower(line[1]), "")
		found = append(found, strings.ReplaceAll(text, " ", "-"))
	}
	return found
}
