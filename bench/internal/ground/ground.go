// Package ground is a page of memory that the processes of a slice share. What they hold by turns is written down
// there: it shows at once whether two hold at a time, whether tokens grow, and when another process comes to it.
package ground

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const size = 4096

// Ground is the page. All zero to begin with.
type Ground struct {
	last       atomic.Int64 // number of the process that held last
	inside     atomic.Int64 // weights of those who hold
	token      atomic.Int64 // the biggest so far
	overlaps   atomic.Int64 // grants while others excluded them
	regressing atomic.Int64 // tokens that did not grow
}

// Create makes a new page and returns the name of the file it is in.
func Create() (g *Ground, name string, err error) {
	dir := "/dev/shm" // in memory, where there is such a place
	if _, err := os.Stat(dir); err != nil {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "holdfast-bench-")
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = f.Close() }() // the mapping stays
	if err := f.Truncate(size); err != nil {
		return nil, "", err
	}
	g, err = mapped(f)
	return g, f.Name(), err
}

// Open maps the page that another process has created.
func Open(name string) (*Ground, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the mapping stays
	return mapped(f)
}

func mapped(f *os.File) (*Ground, error) {
	page, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	// The page is aligned and never unmapped: a slice has one, and its processes end with it.
	return (*Ground)(unsafe.Pointer(unsafe.SliceData(page))), nil
}

// alone is the weight of one who tolerates nobody.
const alone = 1 << 32

// Enter notes that somebody who tolerates nobody holds.
func (g *Ground) Enter() {
	if g.inside.Add(alone) != alone {
		g.overlaps.Add(1)
	}
}

// Leave undoes Enter. It comes before the release.
func (g *Ground) Leave() { g.inside.Add(-alone) }

// Join notes that somebody holds who tolerates capacity-1 others.
func (g *Ground) Join(capacity int64) {
	if g.inside.Add(1) > capacity {
		g.overlaps.Add(1)
	}
}

// Part undoes Join.
func (g *Ground) Part() { g.inside.Add(-1) }

// Turn notes that process holds, and reports whether another held before.
func (g *Ground) Turn(process int64) bool { return g.last.Swap(process) != process }

// Last returns the process that held last.
func (g *Ground) Last() int64 { return g.last.Load() }

// Fence notes the token of the one who holds.
func (g *Ground) Fence(token int64) {
	if g.token.Swap(token) >= token {
		g.regressing.Add(1)
	}
}

// Violations returns how often exclusion and growing tokens were violated.
func (g *Ground) Violations() (overlaps, regressing int64) {
	return g.overlaps.Load(), g.regressing.Load()
}
