package ratetier_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

func TestEachDecisionIsToldOnce(t *testing.T) {
	f := newFixture(t, ratetier.Config{DefaultTier: "free"})
	ctx, a := f.Admit(context.Background(), ratetier.Check{Identity: ana, Cost: 2, Route: "/chat"})
	a.Take(ctx, 1)
	a.Revise(ctx, 4)
	if err := a.Settle(ctx, 1); err != nil {
		t.Fatal(err)
	}
	f.Peek(ctx, ana)
	f.Charge(ctx, ana, 3)
	f.Refund(ctx, ana, 3)
	f.Take(ctx, user("eva", "gold"), 1)
	f.Take(ctx, ana, 11)
	want := []string{
		"take 2 /chat allowed free free",
		"take 1 /chat allowed free free",
		"take 2 /chat allowed free free",
		"refund 3 /chat allowed free free",
		"take 0  allowed free free",
		"charge 3  allowed free free",
		"refund 3  allowed free free",
		"take 1  allowed gold free",
		"take 11  cost_too_high free free",
	}
	if len(f.events) != len(want) {
		t.Fatalf("%d events, want %d", len(f.events), len(want))
	}
	for i, e := range f.events {
		got := fmt.Sprintf("%v %d %s %v %s %s", e.Mode, e.Cost, e.Route, e.Outcome, e.Identity.Tier, e.Tier)
		if got != want[i] {
			t.Errorf("event %d: %s, want %s", i+1, got, want[i])
		}
		if e.Identity.User == "" || e.Elapsed != 0 {
			t.Errorf("event %d: by %q in %v", i+1, e.Identity.User, e.Elapsed)
		}
	}
}

func TestElapsedIsHowLongTheDecisionTook(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	f.store.during = func() { f.clock.Advance(3 * time.Millisecond) }
	f.Take(context.Background(), ana, 1)
	if got := f.events[0].Elapsed; got != 3*time.Millisecond {
		t.Errorf("elapsed %v, want 3ms", got)
	}
}

func TestAPanickingObserverDoesNotFailTheRequest(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	told := 0
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: newStore(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)},
		Observer: ratetier.Observers(
			func(ratetier.Event) { panic("out of paper") },
			func(ratetier.Event) { told++ },
		),
	}))
	if d := limiter.Take(context.Background(), ana, 1); !d.Allowed || told != 1 {
		t.Errorf("%+v, and the second observer was told %d times", d, told)
	}
	if !strings.Contains(log.String(), `msg="ratetier: the observer panicked" panic="out of paper"`) {
		t.Errorf("the log is %q", log.String())
	}
}

// Whatever is printed or logged, in whatever form, shows no user.
func TestNothingPrintedShowsTheUser(t *testing.T) {
	id := user("sk-secret", "free")
	key := ratetier.Key{User: "sk-secret", Tier: "free"}
	f := newFixture(t, ratetier.Config{})
	carrier := new(ratetier.Carrier)
	ctx, admission := f.Enter(context.Background(), check(id, 1), carrier)
	values := map[string]any{
		"identity":    id,
		"identity of": ratetier.Unidentified("sk-secret", nil),
		"key":         key,
		"event":       f.events[0],
		"decision":    admission.Decision(),
		"check":       check(id, 1),
		"request":     ratetier.Request{Key: key},
		"slice":       []ratetier.Identity{id},
		"map":         map[string]ratetier.Key{"k": key},
		"&identity":   &id,
		"&key":        &key,
		"&event":      &f.events[0],
		"&request":    &ratetier.Request{Key: key},
		"&admission":  admission,
		"&carrier":    carrier,
		"context":     ctx,
	}
	hex := fmt.Sprintf("%x", "sk-secret")
	for name, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%T"} {
			text := fmt.Sprintf(verb, value)
			if strings.Contains(text, "sk-secret") || strings.Contains(strings.ToLower(text), hex) {
				t.Errorf("%s of %s shows the user: %s", verb, name, text)
			}
		}
		var log bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			slog.New(handler).Info("value", "value", value)
			slog.New(handler).Info("group", slog.Group("group", "value", value))
		}
		if strings.Contains(log.String(), "sk-secret") {
			t.Errorf("a log of %s shows the user: %s", name, log.String())
		}
		if text, err := json.Marshal(value); err == nil && bytes.Contains(text, []byte("sk-secret")) {
			t.Errorf("JSON of %s shows the user: %s", name, text)
		}
	}
}

func TestNamesAreStable(t *testing.T) {
	want := []string{
		"none", "allowed", "unlimited", "limited", "cost_too_high", "blocked", "missing_identity", "identify_failed",
		"unknown_tier", "store_failed", "canceled", "invalid_cost", "unknown",
	}
	for i, name := range want {
		if got := ratetier.Outcome(i).String(); got != name {
			t.Errorf("outcome %d is %q, want %q", i, got, name)
		}
	}
	for i, name := range []string{"take", "charge", "refund", "unknown"} {
		if got := ratetier.Mode(i).String(); got != name {
			t.Errorf("mode %d is %q, want %q", i, got, name)
		}
	}
}
