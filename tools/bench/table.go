package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ratetier/ratetier/tools/internal/svg"
)

// table compares the peers that the first column names.
type table struct {
	corner  string
	columns []column
}

// column is a figure of each peer, of which less is better.
type column struct {
	head   string
	peers  string // the name of the benchmark, with % for the peer
	figure func(peer string) value
	show   func(float64) string
}

// took is the time that a benchmark takes.
func took(head, name string, show func(float64) string) column {
	return column{head, name, func(peer string) value { return median(of(name, peer), seconds) }, show}
}

// allocates is how often a benchmark allocates.
func allocates(head, name string) column {
	return column{head, name, func(peer string) value { return median(of(name, peer), allocations) }, count}
}

// alone names what is no peer, but shows what one cannot do without: the benchmarks
// that limit nobody.
var alone = []string{"nobody", "context"}

// addedTo are the columns of what a peer adds to a framework.
func addedTo(framework string) []column {
	name := "Middleware/on=" + framework + "/by=%"
	added := func(unit string) func(string) value {
		return func(peer string) value {
			return minus(median(of(name, peer), unit), median(of(name, alone[0]), unit))
		}
	}
	return []column{
		{"added time", name, added(seconds), duration},
		{"added allocations", name, added(allocations), count},
	}
}

// rows returns the peers of all columns, without what adds nothing to itself.
func (t table) rows(r *runs) []string {
	var rows []string
	for _, column := range t.columns {
		for _, peer := range r.peers(column.peers) {
			if peer != alone[0] && !slices.Contains(rows, peer) {
				rows = append(rows, peer)
			}
		}
	}
	return rows
}

// markdown returns the table, and whether there is anything in it.
func (t table) markdown(r *runs) (string, bool) {
	rows := t.rows(r)
	var out strings.Builder
	fmt.Fprintf(&out, "| %s |", t.corner)
	for _, column := range t.columns {
		fmt.Fprintf(&out, " %s |", column.head)
	}
	out.WriteString("\n|" + strings.Repeat(" --- |", len(t.columns)+1) + "\n")
	for _, peer := range rows {
		fmt.Fprintf(&out, "| %s |", peer)
		for _, column := range t.columns {
			fmt.Fprintf(&out, " %s |", column.cell(r, peer))
		}
		out.WriteString("\n")
	}
	return out.String(), len(rows) > 0
}

// cell shows the figure of a peer, beside how much more that is than ours.
func (c column) cell(r *runs, peer string) string {
	figure, ok := c.figure(peer)(r)
	if !ok {
		return "-"
	}
	text := c.show(figure)
	own, ok := c.figure(ours)(r)
	switch {
	case !ok || peer == ours || slices.Contains(alone, peer):
		return text
	case figure < own:
		text += " **lost**"
	}
	if own > 0 && figure > 0 {
		text += ", " + times(figure/own)
	}
	return text
}

// bars returns the columns as groups of bars, of which the longest is the worst.
func (t table) bars(r *runs) (groups []svg.Group) {
	for _, column := range t.columns {
		g := svg.Group{Name: column.head}
		for _, peer := range r.peers(column.peers) {
			if figure, ok := column.figure(peer)(r); ok && peer != alone[0] {
				g.Bars = append(g.Bars, svg.Bar{Name: peer, Value: max(0, figure), Label: column.show(figure), Main: peer == ours})
			}
		}
		groups = append(groups, g)
	}
	return groups
}
