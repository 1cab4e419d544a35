package main

import (
	"strings"
	"testing"
)

const printed = `
Redis is up
  8 of 8 requests pass, 0 decided locally
Redis is gone
  the outage begins
  10 of 12 requests pass, 12 decided locally
Redis is back
  the outage is over
  12 of 15 requests pass, 0 decided locally
`

func TestAnOutageIsPrintedFromBeginningToEnd(t *testing.T) {
	var got strings.Builder
	got.WriteByte('\n')
	if err := run(&got); err != nil {
		t.Fatal(err)
	}
	if got.String() != printed {
		t.Errorf("printed %s\nwant %s", got.String(), printed)
	}
}
