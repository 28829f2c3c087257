package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// screen is what top shows.
type screen struct {
	address, pattern string
	width, height    int
	byWaiters        bool

	last look // the latest that worked
	err  error
}

// update takes in a look. A failed one leaves what was seen before on the screen, marked as old.
func (s *screen) update(l look) {
	if s.err = l.err; l.err == nil {
		s.last = l
	}
}

// frame draws the whole screen over what is there: clearing it first would flicker.
func (s *screen) frame() string {
	if s.width <= 0 || s.height <= 0 {
		s.width, s.height = 80, 24
	}
	views := slices.Clone(s.last.views)
	order, other := byWaiters, "age"
	if !s.byWaiters {
		order, other = byAge, "waiters"
	}
	slices.SortStableFunc(views, order)
	lines := []string{"\x1b[1m" + cut(s.summary(), s.width) + "\x1b[m"}
	if s.err != nil {
		text := fmt.Sprintf("%v; seen last %s", s.err, s.last.at.Format(time.TimeOnly))
		lines = append(lines, cut(strings.ReplaceAll(text, "\n", " "), s.width))
	}
	lines = append(lines, "", "\x1b[7m"+pad(s.row("KIND", "NAME", "HOLDERS", "WAITING", "HELD FOR", "LEASE LEFT", "HELD BY"), s.width)+"\x1b[m")
	room := max(s.height-len(lines)-1, 0)
	for _, v := range views[:min(room, len(views))] {
		cells := append([]string{v.entry.Kind, plain(v.entry.Name)}, v.cells()...)
		lines = append(lines, cut(s.row(cells...), s.width))
	}
	footer := fmt.Sprintf("s: sort by %s  q: quit", other)
	if more := len(views) - room; more > 0 {
		footer += fmt.Sprintf("   %d more", more)
	}
	lines = append(lines, cut(footer, s.width))
	return "\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J"
}

// summary is the first line.
func (s *screen) summary() string {
	if s.last.at.IsZero() {
		return "holdfast top  " + s.address
	}
	held, contended, waiting := 0, 0, 0
	for _, v := range s.last.views {
		if v.state.Held() {
			held++
		}
		if n := v.waiting(); n > 0 {
			contended++
			waiting += n
		}
	}
	order := "age"
	if s.byWaiters {
		order = "waiters"
	}
	text := fmt.Sprintf("holdfast top  %d held, %d contended, %d waiting, by %s  %s", held, contended, waiting, order, s.address)
	if s.pattern != "" {
		text += "  " + plain(s.pattern)
	}
	return text
}

// row sets cells in columns; the name gets the room that is left.
func (s *screen) row(cells ...string) string {
	name := max(s.width-5-1-8-8-9-11-21, 12)
	return pad(cells[0], 5) + " " + pad(cut(cells[1], name), name) + " " + fmt.Sprintf("%7s %7s %8s %10s ", cells[2], cells[3], cells[4], cells[5]) + cells[6]
}

// cut shortens text to a width. All that is shown is printable, one cell a rune but for wide scripts.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:max(width-1, 0)]) + "…"
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-len([]rune(text)), 0))
}
