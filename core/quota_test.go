package ratetier_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// What a quota cannot be is an error that names the value and what to do about it.
func TestValidateNamesTheValueAndTheFix(t *testing.T) {
	ok := ratetier.PerMinute(10)
	for _, test := range []struct {
		name  string
		quota ratetier.Quota
		want  string
	}{
		{"zero", ratetier.Quota{}, `no quota: write for example "10/min", "unlimited" or "blocked"`},
		{"shadow of nothing", ratetier.Quota{}.Shadow(), `no quota: write for example "10/min", "unlimited" or "blocked"`},
		{"count 0", ratetier.PerMinute(0), "count 0: must be at least 1"},
		{"negative count", ratetier.PerSecond(-1), "count -1: must be at least 1"},
		{"period 0", ratetier.Per(1, 0), "period 0s: must be positive"},
		{"negative period", ratetier.Per(1, -time.Second), "period -1s: must be positive"},
		{"burst 0", ok.Burst(0), "burst 0: must be at least 1"},
		{"negative burst", ok.Burst(-3), "burst -3: must be at least 1"},
		{"faster than a nanosecond", ratetier.PerSecond(2e9), "2000000000 in 1s is faster than one per nanosecond: lower the count or lengthen the period"},
		{"burst too long", ratetier.PerDay(1).Burst(200_000), "burst 200000: at 24h0m0s a cell the bucket would take over 100 years to fill; lower the burst to at most 36500"},
		{"burst overflow", ratetier.PerHour(1).Burst(math.MaxInt64), "burst 9223372036854775807: at 1h0m0s a cell the bucket would take over 100 years to fill; lower the burst to at most 876000"},
		{"the second rate is bad", ok.And(ratetier.PerDay(0)), "count 0: must be at least 1"},
		{"two rates of a period", ok.And(ratetier.PerMinute(5)), "two rates per 1m0s: keep the stricter one"},
		{"five rates", ok.And(ratetier.PerSecond(1)).And(ratetier.PerHour(1)).And(ratetier.PerDay(1)).And(ratetier.Per(1, 2*time.Second)), "5 rates: a quota has at most 4"},
		{"burst of several", ok.And(ratetier.PerDay(100)).Burst(5), "Burst belongs to one rate: call it on PerSecond, PerMinute, ... before And"},
		{"burst of unlimited", ratetier.Unlimited().Burst(5), "Burst belongs to one rate: call it on PerSecond, PerMinute, ... before And"},
		{"and unlimited", ok.And(ratetier.Unlimited()), "And joins rates: Unlimited and Blocked have none"},
		{"blocked and", ratetier.Blocked().And(ok), "And joins rates: Unlimited and Blocked have none"},
		{"and misused", ok.And(ratetier.PerDay(2).And(ratetier.PerHour(1)).Burst(1)), "Burst belongs to one rate: call it on PerSecond, PerMinute, ... before And"},
		{"shadow before and", ok.Shadow().And(ratetier.PerDay(9)), "Shadow is for the whole tier: call it after And"},
	} {
		err := test.quota.Validate()
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
		if text, err := test.quota.MarshalText(); err == nil {
			t.Errorf("%s: an invalid quota has the text %q", test.name, text)
		}
		if got := test.quota.String(); got != "<invalid quota>" {
			t.Errorf("%s: String is %q", test.name, got)
		}
	}
}

func TestQuotaText(t *testing.T) {
	for text, quota := range map[string]ratetier.Quota{
		"10/min":                          ratetier.PerMinute(10),
		"1/s":                             ratetier.PerSecond(1),
		"5/h":                             ratetier.PerHour(5),
		"50000/day":                       ratetier.PerDay(50_000),
		"1000/30day":                      ratetier.Per(1000, 30*24*time.Hour),
		"17/30s":                          ratetier.Per(17, 30*time.Second),
		"2/500ms":                         ratetier.Per(2, 500*time.Millisecond),
		"9/1m30s":                         ratetier.Per(9, 90*time.Second),
		"9/2h30m":                         ratetier.Per(9, 150*time.Minute),
		"9/2h":                            ratetier.Per(9, 2*time.Hour),
		"9/2h0m1s":                        ratetier.Per(9, 2*time.Hour+time.Second),
		"9/10m":                           ratetier.Per(9, 10*time.Minute),
		"9/36h":                           ratetier.Per(9, 36*time.Hour),
		"20/s burst 100":                  ratetier.PerSecond(20).Burst(100),
		"100/s burst 1":                   ratetier.PerSecond(100).Burst(1),
		"20/s burst 100 and 50000/day":    ratetier.PerDay(50_000).And(ratetier.PerSecond(20).Burst(100)),
		"1/s and 2/min and 3/h and 4/day": ratetier.PerSecond(1).And(ratetier.PerMinute(2)).And(ratetier.PerHour(3)).And(ratetier.PerDay(4)),
		"unlimited":                       ratetier.Unlimited(),
		"blocked":                         ratetier.Blocked(),
		"10/min shadow":                   ratetier.PerMinute(10).Shadow(),
		"1/s burst 2 and 9/min shadow":    ratetier.PerSecond(1).Burst(2).And(ratetier.PerMinute(9)).Shadow(),
		"blocked shadow":                  ratetier.Blocked().Shadow(),
	} {
		if got := quota.String(); got != text {
			t.Errorf("String is %q, want %q", got, text)
		}
		parsed, err := ratetier.ParseQuota(text)
		if err != nil || parsed.String() != text {
			t.Errorf("ParseQuota(%q) = %v, %v", text, parsed, err)
		}
	}
}

func TestParseQuotaReadsOtherSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"10/60s":             "10/min",
		"10/1m":              "10/min",
		"10/24h":             "10/day",
		"10/1day":            "10/day",
		"10/min burst 10":    "10/min",
		"50000/day and 20/s": "20/s and 50000/day",
		"10/0.5s":            "10/500ms",
		"0010/min":           "10/min",
	} {
		if quota, err := ratetier.ParseQuota(text); err != nil || quota.String() != want {
			t.Errorf("ParseQuota(%q) = %v, %v, want %s", text, quota, err, want)
		}
	}
}

// Whatever is not a quota is an error that says what to write: above all, nothing
// means unlimited but the word.
func TestParseQuotaRefusesTheRest(t *testing.T) {
	const (
		example = `write a rate such as "10/min" or "20/s burst 100", "unlimited" or "blocked"`
		window  = `write s, min, h, day, days as in "7day" or a duration such as "30s"`
		whole   = "is not a whole number up to 9223372036854775807"
	)
	for text, want := range map[string]string{
		"":                       example,
		"0":                      example,
		"-1":                     example,
		"10":                     example,
		"Unlimited":              example,
		"unlimited ":             example,
		" unlimited":             example,
		"infinite":               example,
		"null":                   example,
		"shadow":                 example,
		"unlimited and 10/s":     example,
		"10/s and":               window,
		"10/s and ":              example,
		"0/s":                    "count 0: must be at least 1",
		"-1/s":                   "count -1: must be at least 1",
		"10/0s":                  "period 0s: must be positive",
		"10/0day":                `window "0day": ` + window,
		"10/-5s":                 "period -5s: must be positive",
		"10/m":                   `window "m": ` + window,
		"10/month":               `window "month": ` + window,
		"10/sec":                 `window "sec": ` + window,
		"10/":                    `window "": ` + window,
		"10/60":                  `window "60": ` + window,
		"10/200000000day":        `window "200000000day": ` + window,
		"/s":                     `"" ` + whole,
		"+5/s":                   `"+5" ` + whole,
		"1e3/s":                  `"1e3" ` + whole,
		"1.5/s":                  `"1.5" ` + whole,
		"1_000/s":                `"1_000" ` + whole,
		"NaN/s":                  `"NaN" ` + whole,
		" 10/s":                  `" 10" ` + whole,
		"10 /s":                  `"10 " ` + whole,
		"9223372036854775808/s":  `"9223372036854775808" ` + whole,
		"9223372036854775807/s":  "faster than one per nanosecond",
		"10/min burst 0":         "burst 0: must be at least 1",
		"10/min burst -1":        "burst -1: must be at least 1",
		"10/min burst":           `window "min burst": ` + window,
		"10/min burst x":         `"x" ` + whole,
		"10/min  burst 5":        `window "min ": ` + window,
		"10/min burst 5 burst 6": `"5 burst 6" ` + whole,
		"10/min and 5/min":       "two rates per 1m0s: keep the stricter one",
		"1/s and 1/2s and 1/3s and 1/4s and 1/5s": "5 rates: a quota has at most 4",
		"10/min shadow shadow":                    `window "min shadow": ` + window,
		"10/min shadow and 5/s":                   `window "min shadow": ` + window,
		"10/min\n":                                `window "min\n": ` + window,
	} {
		quota, err := ratetier.ParseQuota(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "ratetier: quota ") {
			t.Errorf("ParseQuota(%q) = %v, want an error with %s", text, err, want)
		}
		if quota.Validate() == nil {
			t.Errorf("ParseQuota(%q) returned the quota %v beside its error", text, quota)
		}
	}
}

func FuzzParseQuota(f *testing.F) {
	for _, text := range []string{
		"10/min", "20/s burst 100 and 50000/day", "17/30s", "1000/30day", "unlimited", "blocked shadow",
		"0/s", "1/1ns", "9/2h30m", "1/0.1s", "1/100us", "9223372036854775807/9223372036854775807ns burst 1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quota, err := ratetier.ParseQuota(text)
		if err != nil {
			return
		}
		canonical, err := quota.MarshalText()
		if err != nil {
			t.Fatalf("%q parses to a quota without a text: %v", text, err)
		}
		var again ratetier.Quota
		if err := again.UnmarshalText(canonical); err != nil {
			t.Fatalf("%q has the text %q, which does not parse: %v", text, canonical, err)
		}
		if again.String() != string(canonical) {
			t.Fatalf("%q has the text %q, which reads as %v", text, canonical, again)
		}
		if a, b := quota.Rates(), again.Rates(); len(a) != len(b) || quota.IsUnlimited() != again.IsUnlimited() || quota.IsBlocked() != again.IsBlocked() || quota.IsShadow() != again.IsShadow() {
			t.Fatalf("%q: %v and %v differ", text, quota, again)
		} else {
			for i := range a {
				if a[i] != b[i] {
					t.Fatalf("%q: rate %v became %v", text, a[i], b[i])
				}
			}
		}
	})
}

func TestTiersAreReadFromJSON(t *testing.T) {
	var tiers ratetier.Tiers
	text := `{"enterprise":"unlimited","free":"10/min","pro":"20/s burst 100 and 50000/day"}`
	if err := json.Unmarshal([]byte(text), &tiers); err != nil {
		t.Fatal(err)
	}
	if back, err := json.Marshal(tiers); err != nil || string(back) != text {
		t.Errorf("marshaled to %s, %v", back, err)
	}
}

// In a file of tiers, what is not a quota fails loudly, at the latest when the limiter
// is built.
func TestTiersFromJSONFailLoudly(t *testing.T) {
	for _, text := range []string{`{"free": 0}`, `{"free": -1}`, `{"free": null}`, `{"free": ""}`, `{"free": "0"}`, `{"free": {}}`, `{"free": true}`, `{}`, `null`} {
		var tiers ratetier.Tiers
		err := json.Unmarshal([]byte(text), &tiers)
		if err == nil {
			_, err = ratetier.New(ratetier.Config{Store: newStore(), Tiers: tiers})
		}
		if err == nil {
			t.Errorf("%s makes a limiter", text)
		}
	}
}

func TestUnmarshalTextLeavesTheQuotaOnAnError(t *testing.T) {
	quota := ratetier.PerMinute(10)
	if err := quota.UnmarshalText([]byte("0/s")); err == nil || quota.String() != "10/min" {
		t.Errorf("got %v, %v", quota, err)
	}
}

func TestQuotasDoNotShareRates(t *testing.T) {
	base := ratetier.PerSecond(20)
	bursty := base.Burst(100)
	both := base.And(ratetier.PerDay(5))
	base.Rates()[0].Count = 1
	if base.String() != "20/s" || bursty.String() != "20/s burst 100" || both.String() != "20/s and 5/day" {
		t.Errorf("got %v, %v and %v", base, bursty, both)
	}
}
