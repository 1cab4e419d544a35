package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/ratetier/ratetier/tools/internal/svg"
)

// page is the file of the page, in the folder of the documentation.
const page = "benchmarks.md"

// section is a part of the page. It is left out if nothing of it was measured.
type section struct {
	title  string
	text   string
	chart  chart
	tables []table
}

// chart is a picture of the section's tables.
type chart struct{ file, title, description string }

func sections() []section {
	middleware := section{
		title: "Middleware",
		text: "What is added to a request that passes, in process and without a socket, over the framework alone. All tell users apart, " +
			"tollbooth by address and the others by a header; all but echo's own send what is left. Only ratetier hands the decision to the " +
			"handler: *context* is what the request's context costs for that, without a limiter.",
		chart: chart{"middleware.svg", "Time that a middleware adds to a request", "A bar for each limiter on each framework. Shorter is better."},
	}
	for _, framework := range frameworks {
		middleware.tables = append(middleware.tables, table{framework.name, addedTo(framework.name)})
	}
	var users []column
	for _, n := range []string{"1", "100000", "1000000"} {
		for _, way := range []string{"serial", "parallel"} {
			users = append(users, took(people(n)+", "+way, "Memory/users="+n+"/by=%/"+way, duration))
		}
	}
	memory := table{"in memory", append(users, allocates("allocations", "Memory/users=1000000/by=%/serial"))}
	redis := table{"in Redis", []column{
		took("1 caller", "Redis/callers=1/by=%", duration),
		took("64 callers", "Redis/callers=64/by=%", rate),
		took("256 callers", "Redis/callers=256/by=%", rate),
		allocates("allocations", "Redis/callers=1/by=%"),
	}}
	return []section{
		{
			"Memory", "One check of a user who comes in random order, from one goroutine, and from as many as there are cores.",
			chart{"memory.svg", "Time of a check in memory", "A bar for each limiter, for one user and many. Shorter is better."}, []table{memory},
		},
		{
			"Redis", "Checks against one server on the same machine, from one caller who waits for each, and from many at once.",
			chart{"redis.svg", "Time of a check in Redis", "A bar for each limiter, from one caller and many. Shorter is better."}, []table{redis},
		},
		middleware,
	}
}

// page returns the page.
func (r *runs) page() []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "# Benchmarks\n\n"+
		"`make bench` measured this on %s, at commit %s, and wrote this page from [the runs](%s).\n"+
		"A figure is the median of %s rounds of %s. In each round everything runs once, in another order.\n"+
		"× is how much of something a peer takes beside ratetier, and **lost** where it takes less.\n"+
		"Times differ between machines: compare within this page.\n\n",
		r.get("date"), r.get("commit"), kept, r.get("rounds"), r.get("time"))
	out.WriteString(r.versions())
	for _, s := range sections() {
		var tables []string
		for _, t := range s.tables {
			if text, ok := t.markdown(r); ok {
				tables = append(tables, text)
			}
		}
		if len(tables) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n![%s](%s)\n\n%s", s.title, s.text, s.chart.title, s.chart.path(), strings.Join(tables, "\n"))
	}
	out.WriteString("\n## Goals\n\n| | goal | measured | |\n| --- | --- | --- | --- |\n")
	for _, g := range goals() {
		out.WriteString(g.row(r))
	}
	return []byte(out.String())
}

// versions returns the table of what was measured, and on what.
func (r *runs) versions() string {
	var out strings.Builder
	fmt.Fprintf(&out, "| | |\n| --- | --- |\n| machine | %s, %s cores, %s/%s |\n| Go | %s |\n| Redis | %s |\n",
		strings.TrimSpace(r.get("cpu")), r.get("cores"), r.get("goos"), r.get("goarch"), strings.TrimPrefix(r.get("go"), "go"), r.get("redis"))
	for _, config := range r.setup {
		if module, ok := strings.CutPrefix(config.Key, required); ok {
			fmt.Fprintf(&out, "| %s | %s |\n", module, config.Value)
		}
	}
	return out.String()
}

// charts returns the charts of what was measured, by their path.
func (r *runs) charts() map[string][]byte {
	files := map[string][]byte{}
	for _, s := range sections() {
		var groups []svg.Group
		for _, t := range s.tables {
			if len(t.rows(r)) == 0 {
				continue
			}
			// Allocations come last, and have another scale.
			bars := t.bars(r)
			bars = bars[:len(bars)-1]
			if len(s.tables) > 1 {
				bars[0].Name = t.corner
			}
			groups = append(groups, bars...)
		}
		if groups != nil {
			files[s.chart.path()] = svg.Bars{Title: s.chart.title, Description: s.chart.description, Groups: groups}.SVG()
		}
	}
	return files
}

func (c chart) path() string { return path.Join("benchmarks", c.file) }
