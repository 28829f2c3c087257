// Package table prints what an example has seen.
package table

import "fmt"

// Row prints a label and a value.
func Row(label, format string, args ...any) {
	fmt.Printf("%18s: "+format+"\n", append([]any{label}, args...)...)
}
