package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/waits"
)

// balance is what came of a sale.
type balance struct {
	Stock   int // before
	Left    int // after, as the counter says
	Results []result
}

func (b balance) sold() int {
	sold := 0
	for _, r := range b.Results {
		sold += r.Sold
	}
	return sold
}

// oversold is how many were sold beyond what left the shelf: two buyers that read the same number bought the
// same item.
func (b balance) oversold() int { return b.sold() - (b.Stock - b.Left) }

// check says what is wrong with the sums.
func (b balance) check() error {
	switch {
	case b.oversold() != 0 || b.sold() > b.Stock:
		return fmt.Errorf("the lock did not hold: %d sold, %d left of %d", b.sold(), b.Left, b.Stock)
	case b.Left != 0:
		return fmt.Errorf("%d of %d were not sold", b.Left, b.Stock)
	}
	return nil
}

// String is the table.
func (b balance) String() string {
	var (
		t      strings.Builder
		waited waits.Waits
		took   time.Duration
	)
	row := func(label, format string, args ...any) {
		fmt.Fprintf(&t, "%12s: "+format+"\n", append([]any{label}, args...)...)
	}
	for _, r := range b.Results {
		waited = append(waited, r.Waits...)
		took = max(took, r.Took)
	}
	row("sold", "%d", b.sold())
	row("left", "%d", b.Left)
	row("oversold", "%d", b.oversold())
	if took > 0 {
		row("sales/s", "%.0f", float64(b.sold())/took.Seconds())
	}
	row("waits", "%v", waited)
	for i, r := range b.Results {
		row(fmt.Sprintf("process %d", i+1), "%d sold", r.Sold)
	}
	return t.String()
}
