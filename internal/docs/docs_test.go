// Package docs_test checks what the Markdown files of this repository say: links lead somewhere, code compiles, and
// commands exist.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// document is a Markdown file.
type document struct {
	path   string // from the root of the repository
	prose  []line // what is not fenced
	blocks []block
}

type line struct {
	number int
	text   string
}

// block is a fenced block of code.
type block struct {
	language string
	lines    []line
}

func (b block) text() string {
	var t strings.Builder
	for _, l := range b.lines {
		t.WriteString(l.text + "\n")
	}
	return t.String()
}

// documents reads all Markdown files.
func documents(t *testing.T) (all []document) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path)) // not by the FS: the cache of test results sees this
		all = append(all, read(path, string(text)))
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("read the documents: %d found, %v", len(all), err)
	}
	return all
}

// read takes a document apart.
func read(path, text string) document {
	d := document{path: path}
	var open *block // the one that is being read
	for i, s := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(s), "```")
		switch {
		case isFence && open == nil:
			open = &block{language: fence}
		case isFence:
			d.blocks = append(d.blocks, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line{i + 1, s})
		default:
			d.prose = append(d.prose, line{i + 1, s})
		}
	}
	return d
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ +(.*)$`)
	markup  = regexp.MustCompile("\\[([^]]*)\\]\\([^)]*\\)|[`*]")
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N}\p{M} _-]`)
)

// anchors are the names under which a document's headings can be linked to.
func (d document) anchors() map[string]bool {
	all := make(map[string]bool)
	for _, l := range d.prose {
		if m := heading.FindStringSubmatch(l.text); m != nil {
			plain := noSlug.ReplaceAllString(strings.ToLower(markup.ReplaceAllString(m[1], "$1")), "")
			all[strings.ReplaceAll(plain, " ", "-")] = true
		}
	}
	return all
}

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	all := documents(t)
	anchors := make(map[string]map[string]bool)
	for _, d := range all {
		anchors[d.path] = d.anchors()
	}
	for _, d := range all {
		for _, l := range d.prose {
			for _, m := range link.FindAllStringSubmatch(l.text, -1) {
				target, anchor, _ := strings.Cut(m[1], "#")
				if strings.Contains(target, ":") { // https:, mailto:
					continue
				}
				to := d.path
				if target != "" {
					to = filepath.ToSlash(filepath.Join(filepath.Dir(d.path), target))
				}
				if _, err := os.Stat(filepath.Join(root, to)); err != nil {
					t.Errorf("%s:%d: %s is not there", d.path, l.number, to)
				} else if anchor != "" && !anchors[to][anchor] {
					t.Errorf("%s:%d: %s has no heading #%s", d.path, l.number, to, anchor)
				}
			}
		}
	}
}

var (
	targets  = regexp.MustCompile(`(?m)^([a-z][a-z0-9 -]*):`)
	makes    = regexp.MustCompile("(?:^|[`;&|] *)make ([a-z][a-z0-9-]*)")
	packages = regexp.MustCompile(`go (?:run|build|test|install)(?: -\S+(?: \S+)?)* (\./[\w./-]+)`)
)

func TestEveryCommandHasItsTargetOrPackage(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, m := range targets.FindAllStringSubmatch(string(makefile), -1) {
		for target := range strings.FieldsSeq(m[1]) {
			known[target] = true
		}
	}
	for _, d := range documents(t) {
		lines := d.prose
		for _, b := range d.blocks {
			if b.language != "go" {
				lines = append(lines, b.lines...)
			}
		}
		for _, l := range lines {
			for _, m := range makes.FindAllStringSubmatch(strings.TrimSpace(l.text), -1) {
				if !known[m[1]] {
					t.Errorf("%s:%d: the Makefile has no target %s", d.path, l.number, m[1])
				}
			}
			for _, m := range packages.FindAllStringSubmatch(l.text, -1) {
				if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(m[1], "..."))); err != nil {
					t.Errorf("%s:%d: there is no package %s", d.path, l.number, m[1])
				}
			}
		}
	}
}
