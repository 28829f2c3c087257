package integration

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Whatever docs/reliability.md says is proven by a test is named there as the test is.
func TestReliabilityNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/reliability.md")
	must(t, err)
	var sources strings.Builder
	must(t, fs.WalkDir(os.DirFS(".."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			source, failed := os.ReadFile("../" + path)
			sources.Write(source)
			err = failed
		}
		return err
	}))
	for _, name := range regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(text), -1) {
		if !strings.Contains(sources.String(), "func "+name+"(") {
			t.Errorf("there is no %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`conformance: (.*?) \|`).FindAllStringSubmatch(string(text), -1) {
		for _, scenario := range strings.Split(strings.Split(m[1], "; `")[0], "; ") {
			if !strings.Contains(sources.String(), `"`+scenario) {
				t.Errorf("there is no scenario %q", scenario)
			}
		}
	}
}
