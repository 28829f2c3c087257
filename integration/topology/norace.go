//go:build !race

package topology

// Race reports whether the race detector is on.
const Race = false
