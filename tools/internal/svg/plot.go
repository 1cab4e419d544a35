package svg

import (
	"html"
	"slices"
	"strconv"
	"strings"
)

// Plot is a chart of up to four series, the first on top, over two axes that start at 0.
type Plot struct {
	Title       string
	Description string // what is to be seen, in a sentence
	X, Y        Axis
	Series      []Series
}

// Axis goes from 0 to Max, with a label every Tick. Both must be positive.
type Axis struct {
	Name      string // and the unit: "seconds"
	Max, Tick float64
}

// Series is what its name in the legend stands for.
type Series struct {
	Name   string
	Shape  Shape
	Points []Point // in the order in which they are joined
}

// Point is in the units of the axes. What lies outside of them is drawn outside.
type Point struct{ X, Y float64 }

// Shape says what is drawn from the points of a series.
type Shape int

// What is drawn from the points.
const (
	Line    Shape = iota // joined by straight lines
	Steps                // each holds until the next
	Dots                 // a dot each
	Crosses              // a cross each
)

const plotHeight = 320

// SVG returns the plot as a file.
func (p Plot) SVG() []byte {
	return chart(p.Title, p.Description, plotHeight, func(c *canvas) {
		f := frame{
			left: margin + 44, right: width - margin,
			top: margin + title + line, bottom: plotHeight - margin - 2*line,
			x: p.X, y: p.Y,
		}
		f.axes(c)
		at := f.left
		for i, s := range p.Series {
			c.printf(`<g class="c%d">`, i)
			c.rect("fill", at, margin+title, 10, 10)
			c.WriteString("</g>\n")
			c.text("", "start", at+16, margin+title+10, s.Name)
			at += 40 + letter*float64(len(s.Name))
		}
		for i, s := range slices.Backward(p.Series) { // the first on top
			c.printf(`<g class="c%d">`+"\n", i)
			f.series(c, s)
			c.WriteString("</g>\n")
		}
	})
}

// frame maps the units of two axes to a part of the canvas.
type frame struct {
	left, right, top, bottom float64
	x, y                     Axis
}

func (f frame) place(p Point) (x, y float64) {
	return f.left + (f.right-f.left)*p.X/f.x.Max, f.bottom - (f.bottom-f.top)*p.Y/f.y.Max
}

func (f frame) axes(c *canvas) {
	for i := 0; float64(i)*f.y.Tick <= f.y.Max; i++ {
		value := float64(i) * f.y.Tick
		_, y := f.place(Point{0, value})
		c.line("grid", f.left, y, f.right, y)
		c.text("", "end", f.left-8, y+4, tick(value))
	}
	for i := 0; float64(i)*f.x.Tick <= f.x.Max; i++ {
		value := float64(i) * f.x.Tick
		x, _ := f.place(Point{value, 0})
		c.line("axis", x, f.bottom, x, f.bottom+4)
		c.text("", "middle", x, f.bottom+line, tick(value))
	}
	c.line("axis", f.left, f.bottom, f.right, f.bottom)
	c.text("", "middle", (f.left+f.right)/2, f.bottom+2*line, f.x.Name)
	c.printf(`<text text-anchor="middle" transform="translate(%s %s)rotate(-90)">%s</text>`+"\n",
		num(margin+4), num((f.top+f.bottom)/2), html.EscapeString(f.y.Name))
}

func (f frame) series(c *canvas, s Series) {
	var path strings.Builder
	for i, point := range s.Points {
		x, y := f.place(point)
		switch {
		case s.Shape == Dots:
			c.printf(`<circle class="fill" cx="%s" cy="%s" r="3"/>`+"\n", num(x), num(y))
		case s.Shape == Crosses:
			c.line("cross", x-3, y-3, x+3, y+3)
			c.line("cross", x-3, y+3, x+3, y-3)
		case i == 0:
			path.WriteString("M" + num(x) + " " + num(y))
		case s.Shape == Steps:
			path.WriteString("H" + num(x) + "V" + num(y))
		default:
			path.WriteString("L" + num(x) + " " + num(y))
		}
	}
	if path.Len() > 0 {
		c.printf(`<path class="line" d="%s"/>`+"\n", path.String())
	}
}

func tick(value float64) string {
	return strconv.FormatFloat(value, 'g', 6, 64)
}
