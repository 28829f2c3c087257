package report

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/result"
)

// The chart's measures, in pixels.
const (
	chartWidth = 760
	labelWidth = 250
	valueWidth = 170
	rowHeight  = 24
	barHeight  = 14
	topMargin  = 54
	foot       = 34
)

// charted are the cases with peers, in the chart's words.
var charted = []struct{ scenario, label string }{
	{"a alone", "alone"},
	{"b 16", "16 goroutines, own keys"},
	{"b 64", "64 goroutines, own keys"},
	{"b 256", "256 goroutines, own keys"},
	{"c 16", "16 goroutines, one key"},
	{"c 256", "256 goroutines, one key"},
	{"d 4x4", "4 processes × 4, one key"},
	{"d 16x4", "16 processes × 4, one key"},
	{"e c 16", "16 goroutines, 2 ms inside"},
	{"e c 256", "256 goroutines, 2 ms inside"},
	{"e d 4x4", "4 processes × 4, 2 ms inside"},
	{"e d 16x4", "16 processes × 4, 2 ms inside"},
}

// style makes the chart readable on light and dark pages, also where the page is an <img>'s parent.
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 15px; }
.tick { font-size: 11px; fill: #59636e; }
.grid { stroke: #d1d9e0; } .one { stroke: #59636e; stroke-width: 1.5; }
.more { fill: #1f7a4d; } .less { fill: #bc4c00; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .tick { fill: #9198a1; }
.grid { stroke: #3d444d; } .one { stroke: #9198a1; }
.more { fill: #3fb950; } .less { fill: #f0883e; }
}
</style>
`

type bar struct {
	label, peer string
	ratio       float64
}

// Chart returns an SVG with a bar for each case: the rate of holdfast in units of the best peer's, on a
// logarithmic scale. It is empty if no such case was measured.
func Chart(set result.Set) string {
	bars := barsOf(set)
	if len(bars) == 0 {
		return ""
	}
	low, high := -1, 1 // powers of ten
	for _, b := range bars {
		low = min(low, int(math.Floor(math.Log10(b.ratio))))
		high = max(high, int(math.Ceil(math.Log10(b.ratio))))
	}
	scale := float64(chartWidth-labelWidth-valueWidth) / float64(high-low)
	x := func(ratio float64) float64 { return labelWidth + (math.Log10(ratio)-float64(low))*scale }
	height := topMargin + rowHeight*len(bars) + foot
	bottom := height - foot

	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n",
		chartWidth, height, chartWidth, height)
	s.WriteString("<title>cycles per second of holdfast in units of the best peer</title>\n" + style)
	fmt.Fprintf(&s, `<text class="title" x="8" y="24">holdfast, cycles/s in units of the best peer (logarithmic)</text>`+"\n")
	for power := low; power <= high; power++ {
		at, class := x(math.Pow10(power)), "grid"
		if power == 0 {
			class = "one"
		}
		fmt.Fprintf(&s, `<line class="%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, class, at, topMargin-10, at, bottom)
		fmt.Fprintf(&s, `<text class="tick" x="%.1f" y="%d" text-anchor="middle">%s ×</text>`+"\n", at, bottom+16, number(math.Pow10(power)))
	}
	for i, b := range bars {
		s.WriteString(b.svg(topMargin+i*rowHeight, x))
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func (b *bar) svg(y int, x func(float64) float64) string {
	from, to, class := x(1), x(b.ratio), "more"
	if b.ratio < 1 {
		from, to, class = to, from, "less"
	}
	text := y + barHeight - 2
	return fmt.Sprintf(`<text x="%d" y="%d" text-anchor="end">%s</text>`+
		`<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="2"/>`+
		`<text x="%.1f" y="%d">%s × %s</text>`+"\n",
		labelWidth-14, text, html.EscapeString(b.label), class, from, y, math.Max(to-from, 1), barHeight,
		math.Max(to, x(1))+6, text, number(b.ratio), b.peer)
}

func barsOf(set result.Set) []bar {
	var bars []bar
	for _, c := range charted {
		ours, ok := set.Of(c.scenario, holdfast, "rate")
		best := bar{label: c.label}
		rate := 0.0
		for _, peer := range peers {
			if s, ok := set.Of(c.scenario, peer, "rate"); ok && s.Median > rate {
				best.peer, rate = peer, s.Median
			}
		}
		if ok && rate > 0 && ours.Median > 0 {
			best.ratio = ours.Median / rate
			bars = append(bars, best)
		}
	}
	return bars
}
