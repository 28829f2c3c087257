package explorer

import (
	"fmt"
	"strings"
)

// Source is the Lua of the scripts by name, as Redis gets it.
type Source map[string]string

// Replace returns a copy of s with old replaced by new in every script. It is an error if no script
// contains old: an edit that no longer applies would make its caller test something else.
func (s Source) Replace(old, new string) (Source, error) {
	edited, found := Source{}, false
	for name, text := range s {
		found = found || strings.Contains(text, old)
		edited[name] = strings.ReplaceAll(text, old, new)
	}
	if !found {
		return nil, fmt.Errorf("no script contains %q", old)
	}
	return edited, nil
}

// tick is the scopes' unit of time in ms. The scripts refuse leases below 100 ms.
const tick = 100

// scaled returns s with the scripts' own constants brought down to the size of a small scope: what takes
// them 1.5 s or 1 s takes one tick here, and they make at most maxGrants grants in one run.
func (s Source) scaled(maxGrants int) (Source, error) {
	edits := []struct{ old, new string }{
		{"local STEP = 1500", fmt.Sprintf("local STEP = %d", tick)},
		{"local SLACK = 1000", fmt.Sprintf("local SLACK = %d", tick)},
		{"local DAY, SLACK = 86400000, 1000", fmt.Sprintf("local DAY, SLACK = 86400000, %d", tick)},
		{"local MAXGRANTS = 128", fmt.Sprintf("local MAXGRANTS = %d", maxGrants)},
	}
	for _, e := range edits {
		var err error
		if s, err = s.Replace(e.old, e.new); err != nil {
			return nil, err
		}
	}
	return s, nil
}
