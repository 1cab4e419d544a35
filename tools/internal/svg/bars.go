package svg

// Bars is a chart of horizontal bars on one scale, which starts at 0.
type Bars struct {
	Title       string
	Description string // what is to be seen, in a sentence
	Groups      []Group
}

// Group is a heading, which may be empty, and the bars below it.
type Group struct {
	Name string
	Bars []Bar
}

// Bar is one value, at least 0.
type Bar struct {
	Name  string
	Value float64
	Label string // the value as it is to be read: "42 ns"
	Main  bool   // drawn in color, while what it is compared with is gray
}

// SVG returns the bars as a file.
func (b Bars) SVG() []byte {
	names, labels, peak := 0, 0, 0.0
	height := float64(2*margin + title)
	for _, g := range b.Groups {
		height += line * float64(len(g.Bars)+1)
		for _, bar := range g.Bars {
			names, labels, peak = max(names, len(bar.Name)), max(labels, len(bar.Label)), max(peak, bar.Value)
		}
	}
	left := float64(margin + letter*names + 8)
	scale := (width - margin - letter*float64(labels) - 8 - left) / max(peak, 1e-9)

	return chart(b.Title, b.Description, height, func(c *canvas) {
		y := float64(margin + title)
		for _, g := range b.Groups {
			c.text("", "start", margin, y+14, g.Name)
			y += line
			for _, bar := range g.Bars {
				class := "c3"
				if bar.Main {
					class = "c0"
				}
				c.text("", "end", left-8, y+14, bar.Name)
				c.printf(`<g class="%s">`, class)
				c.rect("fill", left, y+3, max(1, bar.Value*scale), line-6)
				c.WriteString("</g>\n")
				c.text("", "start", left+bar.Value*scale+8, y+14, bar.Label)
				y += line
			}
		}
	})
}
