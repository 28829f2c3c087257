// Holdfast is the command line of the lock library of the same name: it runs commands under a lock, and shows and frees
// what is held. See its help, or README.md.
package main

import (
	"context"
	"os"
)

func main() {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	os.Exit(a.execute(context.Background(), os.Args[1:]))
}
