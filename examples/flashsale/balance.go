package main

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/table"
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
		return fmt.Errorf("the sale went wrong: %d sold, %d left of %d", b.sold(), b.Left, b.Stock)
	case b.Left != 0:
		return fmt.Errorf("%d of %d were not sold", b.Left, b.Stock)
	}
	return nil
}

func (b balance) print() {
	var (
		waited    waits.Waits
		took      time.Duration
		conflicts int
	)
	for _, r := range b.Results {
		waited = append(waited, r.Waits...)
		took = max(took, r.Took)
		conflicts += r.Conflicts
	}
	table.Row("sold", "%d", b.sold())
	table.Row("left", "%d", b.Left)
	table.Row("oversold", "%d", b.oversold())
	if took > 0 {
		table.Row("sales/s", "%.0f", float64(b.sold())/took.Seconds())
	}
	if conflicts > 0 {
		table.Row("conflicts", "%d: sales that somebody was faster than, and that began anew", conflicts)
	}
	table.Row("waits", "%v", waited)
	for i, r := range b.Results {
		table.Row(fmt.Sprintf("process %d", i+1), "%d sold", r.Sold)
	}
}
