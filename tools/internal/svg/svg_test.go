package svg_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ratetier/ratetier/tools/internal/svg"
)

var plot = svg.Plot{
	Title:       "a < b",
	Description: "b & c",
	X:           svg.Axis{Name: "seconds", Max: 10, Tick: 5},
	Y:           svg.Axis{Name: "cells", Max: 4, Tick: 2},
	Series: []svg.Series{
		{Name: "line", Shape: svg.Line, Points: []svg.Point{{0, 0}, {10, 4}}},
		{Name: "steps", Shape: svg.Steps, Points: []svg.Point{{0, 0}, {10, 4}}},
		{Name: "dot", Shape: svg.Dots, Points: []svg.Point{{0, 0}}},
		{Name: "cross", Shape: svg.Crosses, Points: []svg.Point{{10, 4}}},
	},
}

var bars = svg.Bars{
	Title: "time",
	Groups: []svg.Group{{Name: "one user", Bars: []svg.Bar{
		{Name: "ours", Value: 50, Label: "50 ns", Main: true},
		{Name: "theirs", Value: 100, Label: "100 ns"},
		{Name: "nothing", Label: "0 ns"},
	}}},
}

func TestChartsAreWellFormedXML(t *testing.T) {
	for name, file := range map[string][]byte{"plot": plot.SVG(), "bars": bars.SVG(), "no bars": svg.Bars{}.SVG()} {
		decoder := xml.NewDecoder(strings.NewReader(string(file)))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, file)
			}
		}
	}
}

func TestAPlotPutsPointsWhereTheAxesSay(t *testing.T) {
	expect(t, plot.SVG(),
		`d="M60 264L704 60"`,                       // from the origin to the far corner, straight
		`d="M60 264H704V60"`,                       // and in a step
		`<circle class="fill" cx="60" cy="264"`,    // a dot at the origin
		`d="M701 57L707 63"`, `d="M701 63L707 57"`, // a cross at the far corner
		`x="382" y="284">5<`, `y="166">2<`, // ticks
		`<title>a &lt; b</title><desc>b &amp; c</desc>`,
	)
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	expect(t, bars.SVG(),
		`<g class="c0"><rect class="fill" x="73" y="63" width="290.5"`,
		`<g class="c3"><rect class="fill" x="73" y="83" width="581"`,
		`<g class="c3"><rect class="fill" x="73" y="103" width="1"`, // nothing is still seen
	)
}

func expect(t *testing.T, file []byte, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(string(file), part) {
			t.Errorf("no %s in\n%s", part, file)
		}
	}
}
