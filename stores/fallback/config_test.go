package fallbackstore_test

import (
	"fmt"
	"strings"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
)

func TestNewPanicsWithEverythingThatIsWrong(t *testing.T) {
	var none *fakePrimary
	primary := newFakePrimary()
	for _, test := range []struct {
		primary ratetier.Store
		config  fallbackstore.Config
		want    []string
	}{
		{nil, fallbackstore.Config{}, []string{"no primary: use for example redisstore.New"}},
		{none, fallbackstore.Config{}, []string{"no primary"}},
		{primary, fallbackstore.Config{Local: none}, []string{"a nil pointer as Local"}},
		{primary, fallbackstore.Config{Instances: -1}, []string{"-1 Instances: must be positive"}},
		{primary, fallbackstore.Config{Failures: -1}, []string{"-1 Failures: must be 1 to 1000000, or 0 for 5"}},
		{primary, fallbackstore.Config{Failures: 1_000_001}, []string{"1000001 Failures"}},
		{primary, fallbackstore.Config{ProbeEvery: -1}, []string{"-1ns for ProbeEvery: must be positive, or 0 for 1s"}},
		{nil, fallbackstore.Config{Local: none, Instances: -2, Failures: -3, ProbeEvery: -4}, []string{"primary", "Local", "-2", "-3", "-4ns"}},
	} {
		got := panicOf(func() { fallbackstore.New(test.primary, test.config) })
		if !strings.HasPrefix(got, "fallbackstore: ") {
			t.Errorf("panic %q, want one that begins with the package", got)
		}
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("panic %q does not say %q", got, want)
			}
		}
	}
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}
