package ratetier_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// logTo returns a logger that writes lines without their time.
func logTo(log *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestLogEvents(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, ratetier.Config{DefaultTier: "free"})
	for range 10 {
		f.Take(context.Background(), ana, 1)
	}
	f.Take(context.Background(), ana, 1) // limited: nothing to tell
	f.Take(context.Background(), user("secret-eva", "gold"), 1)
	f.Take(context.Background(), ana, 50)
	f.Take(context.Background(), ana, -1)
	f.Take(context.Background(), ratetier.Unidentified("192.0.2.77", nil), 1)
	f.Take(context.Background(), ratetier.Unidentified("192.0.2.77", errDatabase), 1)
	f.store.err = errStore
	f.Admit(context.Background(), ratetier.Check{Identity: user("secret-ana", "free"), Cost: 1, Route: "GET /data"})
	observe := ratetier.LogEvents(logTo(&log))
	for _, event := range f.events {
		observe(event)
	}
	want := `level=WARN msg=ratetier outcome=unknown_tier allowed=true tier=gold route="" cost=1
level=WARN msg=ratetier outcome=cost_too_high allowed=false tier=free route="" cost=50
level=ERROR msg=ratetier outcome=invalid_cost allowed=false tier=free route="" cost=-1 error="ratetier: cost -1: must be at least 0; to give back, use Refund"
level=ERROR msg=ratetier outcome=identify_failed allowed=false tier="" route="" cost=1 error="database: connection refused"
level=ERROR msg=ratetier outcome=store_failed allowed=true tier=free route="GET /data" cost=1 error="store: no route to host"
`
	if log.String() != want {
		t.Errorf("the log is\n%swant\n%s", log.String(), want)
	}
}

func TestAnOutageDoesNotFloodTheLog(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, ratetier.Config{DefaultTier: "free"})
	observe := ratetier.LogEvents(logTo(&log))
	for _, step := range []struct {
		wait    time.Duration
		events  int
		of      string // an unknown tier, or "" for a failure of the store
		lines   int
		leftOut string // as told by the first of them
	}{
		{0, 10, "", 10, ""}, {0, 5000, "", 0, ""},
		{5 * time.Second, 1, "", 0, ""}, {time.Second, 3, "", 1, "left_out=5001"}, {6 * time.Second, 1, "", 1, "left_out=2"},
		// Another outcome has lines of its own, whatever the tiers are called.
		{0, 3000, "gold", 10, ""}, {6 * time.Second, 1, "gold", 1, "left_out=2990"}, {0, 1, "", 1, ""},
		{time.Hour, 100, "", 10, ""}, {0, 1, "gold", 1, ""}, {time.Hour, 1, "", 1, "left_out=90"},
		// A clock that is set back silences nobody for longer than a minute.
		{0, 20, "", 9, ""}, {-time.Hour, 1, "", 0, ""}, {7 * time.Second, 1, "", 1, "left_out=12"},
	} {
		f.clock.Advance(step.wait)
		log.Reset()
		for i := range step.events {
			f.events, f.store.err = nil, errStore
			identity := ana
			if step.of != "" {
				f.store.err, identity.Tier = nil, fmt.Sprint(step.of, i)
			}
			f.Take(context.Background(), identity, 0)
			observe(f.events[0])
		}
		lines := strings.SplitAfter(log.String(), "\n")
		leftOut := regexp.MustCompile(`left_out=\d+`)
		if len(lines)-1 != step.lines || leftOut.FindString(lines[0]) != step.leftOut || leftOut.MatchString(strings.Join(lines[1:], "")) {
			t.Errorf("after %v, %d events of %q: %d lines, want %d with %q\n%s",
				step.wait, step.events, step.of, len(lines)-1, step.lines, step.leftOut, log.String())
		}
	}
}

func TestLinesNameUsersOnlyByTheirHashAndIfAskedFor(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	f.Take(context.Background(), user("key_eva", "gold"), 1)
	f.Take(context.Background(), ratetier.Unidentified("192.0.2.77", errDatabase), 1)
	for _, test := range []struct {
		users func(string) string
		want  []string // of each line
	}{
		{nil, []string{"cost=1$", `refused"$`}},
		{ratetier.HashUsers("pepper"), []string{"cost=1 user=00b187303e2c96cc$", "cost=1 address=[0-9a-f]{16} error="}},
		{ratetier.HashUsers("salt"), []string{"cost=1 user=18900f2cd7b569b0$", "cost=1 address=[0-9a-f]{16} error="}},
		{strings.ToUpper, []string{"cost=1 user=KEY_EVA$", "cost=1 address=192.0.2.77 error="}},
	} {
		var log bytes.Buffer
		observe := ratetier.LogEventsWith(ratetier.LogConfig{Logger: logTo(&log), Users: test.users})
		for i, event := range f.events {
			log.Reset()
			observe(event)
			line := strings.TrimSpace(log.String())
			if !regexp.MustCompile(test.want[i]).MatchString(line) || strings.Contains(line, "key_eva") {
				t.Errorf("%q, want %q", line, test.want[i])
			}
		}
	}
}

func TestHashUsersWantsASecret(t *testing.T) {
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "the secret is empty") {
			t.Errorf("panicked with %q", p)
		}
	}()
	ratetier.HashUsers("")
}

func TestLinesGoToTheDefaultLoggerIfThereIsNoOther(t *testing.T) {
	var log bytes.Buffer
	observe := ratetier.LogEventsWith(ratetier.LogConfig{})
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(logTo(&log)) // as a service does that sets up its log late
	observe(ratetier.Event{Decision: ratetier.Decision{Outcome: ratetier.OutcomeStoreFailed}})
	if !strings.Contains(log.String(), "outcome=store_failed") {
		t.Errorf("the log is %q", log.String())
	}
}

// What a logger would not write is not counted as left out either.
func TestNothingIsLoggedBelowTheLevelOfTheLogger(t *testing.T) {
	var log bytes.Buffer
	var level slog.LevelVar
	level.Set(slog.LevelError)
	observe := ratetier.LogEvents(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: &level})))
	event := ratetier.Event{Decision: ratetier.Decision{Outcome: ratetier.OutcomeUnknownTier}}
	for range 100 {
		observe(event)
	}
	if log.Len() > 0 {
		t.Errorf("the log is %q", log.String())
	}
	level.Set(slog.LevelWarn)
	observe(event)
	if !strings.Contains(log.String(), "outcome=unknown_tier") || strings.Contains(log.String(), "left_out") {
		t.Errorf("the log is %q", log.String())
	}
}

func TestNoLineIsLostBetweenGoroutines(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, ratetier.Config{DefaultTier: "free"})
	f.Take(context.Background(), user("eva", "gold"), 1)
	f.clock.Advance(6 * time.Second)
	f.Take(context.Background(), user("eva", "gold"), 1)
	observe := ratetier.LogEvents(logTo(&log)) // a handler of slog writes one line at a time
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			<-start
			for range 1000 {
				observe(f.events[0])
			}
		})
	}
	close(start)
	wg.Wait()
	observe(f.events[1])
	if lines := strings.Count(log.String(), "\n"); lines != 11 || !strings.HasSuffix(log.String(), " left_out=15990\n") {
		t.Errorf("%d lines:\n%s", lines, log.String())
	}
}
