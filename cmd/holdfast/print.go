package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// printJSON writes a value for programs.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// nameJSON is a name in JSON. Times are in milliseconds.
type nameJSON struct {
	Kind    string       `json:"kind"`
	Name    string       `json:"name"`
	Bytes   string       `json:"name_base64,omitempty"` // when the name is not UTF-8
	Token   int64        `json:"token"`
	Holders []holderJSON `json:"holders"`
	Queue   []waiterJSON `json:"queue"`
}

type holderJSON struct {
	Owner     string `json:"owner"`
	Client    string `json:"client"`
	Label     string `json:"label,omitempty"`
	Depth     int    `json:"depth"`
	Weight    int64  `json:"weight"`
	HeldFor   int64  `json:"held_for_ms"`
	LeaseLeft int64  `json:"lease_left_ms"`
	Token     int64  `json:"token"`
}

type waiterJSON struct {
	Owner    string `json:"owner"`
	Client   string `json:"client"`
	Label    string `json:"label,omitempty"`
	Weight   int64  `json:"weight"`
	Capacity int64  `json:"capacity"`
	Alive    bool   `json:"alive"`
}

// toJSON never returns nil slices: programs want [].
func (v view) toJSON() nameJSON {
	n := nameJSON{Kind: v.entry.Kind, Name: v.entry.Name, Token: v.state.Token, Holders: []holderJSON{}, Queue: []waiterJSON{}}
	if !utf8.ValidString(n.Name) {
		n.Bytes = base64.StdEncoding.EncodeToString([]byte(n.Name))
	}
	for _, h := range v.state.Holders {
		n.Holders = append(n.Holders, holderJSON{
			h.Owner, h.Client, h.Label, h.Depth, h.Weight, v.heldFor(h).Milliseconds(), h.LeaseLeft.Milliseconds(), h.Token,
		})
	}
	for _, w := range v.state.Queue {
		n.Queue = append(n.Queue, waiterJSON{w.Owner, w.Client, w.Label, w.Weight, w.Capacity, w.Alive})
	}
	return n
}

func toJSON(views []view) []nameJSON {
	names := []nameJSON{}
	for _, v := range views {
		names = append(names, v.toJSON())
	}
	return names
}

// table writes rows of cells in columns, indented.
func table(w io.Writer, indent string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, indent+strings.Join(row, "\t"))
	}
	_ = t.Flush() // what cannot be written to a terminal cannot be complained about there
}

// plain is a name for people: as it is, or quoted if a terminal would make something else of it.
func plain(name string) string {
	quoted := strconv.Quote(name)
	if quoted == `"`+name+`"` && !strings.Contains(name, " ") {
		return name
	}
	return quoted
}

// who names a client: its label and as much of its id as tells it from others.
func who(client, label string) string {
	id, _, _ := strings.Cut(client, "@")
	if label == "" {
		return id[:min(len(id), 12)]
	}
	return label + "/" + id[:min(len(id), 6)]
}

// share says what a holder has or a waiter wants.
func share(kind string, weight int64) string {
	switch {
	case kind == "rw" && weight == 1:
		return "read"
	case kind == "rw":
		return "write"
	case kind == "sem":
		return strconv.FormatInt(weight, 10)
	}
	return "all"
}

// short writes a duration in few characters.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// globEscaper has text stand for itself in a pattern.
var globEscaper = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

// count writes a number with its word.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", one, "s")
}
