package report

import (
	_ "embed" // limits
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/result"
)

// limits says why goals are missed. It is written by hand, about figures that stay about the same from run to run.
//
//go:embed limits.md
var limits string

// Markdown returns the whole report. chart is the name of the SVG to show, relative to the report's own place.
func Markdown(set result.Set, m Machine, rounds int, chart string) string {
	var b strings.Builder
	b.WriteString("# Performance\n\n")
	b.WriteString(m.markdown())
	fmt.Fprintf(&b, "\nContenders take turns, %s; figures are medians of the rounds, in parentheses the least and the most. A\n"+
		"worst wait is the median of the rounds' worsts, too. Read ratios: absolute figures are this machine's.\n\n", plural(rounds, "round"))
	if chart != "" {
		fmt.Fprintf(&b, "![cycles per second of holdfast in units of the best peer](%s)\n\n", chart)
	}
	b.WriteString("## Goals\n\n" + goalsTable(Goals(set)))
	b.WriteString(limits + "\n## Figures\n\n")
	var order []string
	for _, k := range contender.Kinds {
		order = append(order, k.Name)
	}
	for _, t := range tables {
		b.WriteString(t.markdown(set, order))
	}
	b.WriteString(notes(set))
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func goalsTable(goals []Goal) string {
	var b strings.Builder
	b.WriteString("| | goal | asked | reached | |\n|---|---|---|---|---|\n")
	for _, g := range goals {
		verdict := "**miss**"
		switch {
		case !g.Measured:
			verdict = "–"
		case g.Pass:
			verdict = "pass"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", g.Number, g.What, g.Target, g.Reached, verdict)
	}
	b.WriteString("\n")
	return b.String()
}

// notes lists what went wrong: rounds that failed are not in the medians.
func notes(set result.Set) string {
	noted := set.Notes()
	if len(noted) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("### What went wrong\n\nRounds without any cycle are not in the figures above.\n\n")
	for _, s := range noted {
		note := strings.Join(strings.Fields(s.Note), " ")
		if len(note) > maxNote {
			note = note[:maxNote] + "…"
		}
		fmt.Fprintf(&b, "* %s, %s, round %d: %s\n", s.Case, s.Contender, s.Round+1, note)
	}
	b.WriteString("\n")
	return b.String()
}

const maxNote = 400
