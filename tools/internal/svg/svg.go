// Package svg draws the charts of the documentation: a [Plot] of lines over two axes,
// and [Bars] to compare values. The same chart is the same bytes on every machine, so
// that a test can tell whether the committed file is what a program draws.
//
// A chart brings its background, in the colors that the reader prefers, light or dark.
// All coordinates are in pixels at the natural size, rounded to a tenth.
package svg

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

const (
	width  = 720
	margin = 16 // around the chart
	title  = 24 // height of the title and of the space below it
	line   = 20 // height of a line of text
	letter = 7  // width of a letter, about
)

// style names the colors: c0 is what the chart is about, c1 to c3 what it is compared
// with.
const style = `<style>
.bg{fill:#fff}.grid{stroke:#d8dee4}.axis{stroke:#57606a}
text{font:12px system-ui,sans-serif;fill:#424a53}.title{font-size:14px;font-weight:600;fill:#1f2328}
.c0{color:#0969da}.c1{color:#bc4c00}.c2{color:#1a7f37}.c3{color:#8c959f}
.line{fill:none;stroke:currentColor;stroke-width:2}.fill{fill:currentColor}.cross{stroke:currentColor;stroke-width:1.5}
@media(prefers-color-scheme:dark){
.bg{fill:#0d1117}.grid{stroke:#30363d}.axis{stroke:#8b949e}text{fill:#c9d1d9}.title{fill:#f0f6fc}
.c0{color:#58a6ff}.c1{color:#f0883e}.c2{color:#3fb950}.c3{color:#6e7681}}
</style>
`

// canvas collects the elements of one chart.
type canvas struct {
	strings.Builder
}

// chart returns a whole file of that height, with what draw puts on it. The
// description is for readers who do not see it.
func chart(name, description string, height float64, draw func(*canvas)) []byte {
	c := &canvas{}
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%s" viewBox="0 0 %[1]d %[2]s" role="img">`+"\n",
		width, num(height))
	c.printf("<title>%s</title><desc>%s</desc>\n", html.EscapeString(name), html.EscapeString(description))
	c.WriteString(style)
	c.WriteString(`<rect class="bg" width="100%" height="100%"/>` + "\n")
	c.text("title", "start", margin, margin+12, name)
	draw(c)
	c.WriteString("</svg>\n")
	return []byte(c.String())
}

func (c *canvas) printf(format string, args ...any) {
	fmt.Fprintf(c, format, args...)
}

// text writes from its anchor: "start", "middle" or "end".
func (c *canvas) text(class, anchor string, x, y float64, text string) {
	c.printf(`<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`+"\n",
		class, anchor, num(x), num(y), html.EscapeString(text))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.printf(`<path class="%s" d="M%s %sL%s %s"/>`+"\n", class, num(x1), num(y1), num(x2), num(y2))
}

func (c *canvas) rect(class string, x, y, w, h float64) {
	c.printf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`+"\n", class, num(x), num(y), num(w), num(h))
}

// num rounds to a tenth of a pixel, which also hides how a machine rounds its floats.
func num(x float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}
