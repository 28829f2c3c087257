package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	// The snippets are compiled against what a command finds, which the cache of test results does not see through.
	_ "github.com/holdfast-go/holdfast"
	_ "github.com/holdfast-go/holdfast/holdfasttest"
)

// imported are what snippets use without importing it, and what they import.
var imported = []string{
	"context", "database/sql", "errors", "fmt", "log/slog", "net/http", "testing", "testing/synctest", "time",
	"github.com/redis/go-redis/v9", "github.com/holdfast-go/holdfast", "github.com/holdfast-go/holdfast/holdfasttest",
	"github.com/holdfast-go/holdfast/hold", // imported by those that use it: most call a variable so
}

// declared are the variables that fragments use without declaring them.
var declared = []string{
	"ctx context.Context", "rdb *redis.Client", "client *holdfast.Client", "hold *holdfast.Hold",
	"charge func(ctx context.Context, order int) error", "audit func(ctx context.Context) error",
	"waited interface { WithLabelValues(...string) interface { Observe(float64) } }", // a Prometheus histogram
}

// TestEveryGoBlockCompiles type-checks each block: a whole file, declarations, or a fragment, which is taken for the
// body of a function that returns an error. A fragment may begin with imports, and leave variables unused.
func TestEveryGoBlockCompiles(t *testing.T) {
	exports := exportData(t)
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, d := range documents(t) {
		for _, b := range d.blocks {
			if b.language != "go" {
				continue
			}
			whole := strings.HasPrefix(b.text(), "package ")
			file, err := parse(fset, d.path, b, whole)
			if err != nil {
				t.Error(err)
				continue
			}
			conf := types.Config{Importer: imports, Error: func(err error) {
				var e types.Error
				if whole || !errors.As(err, &e) || !e.Soft { // soft: something is not used
					t.Error(err)
				}
			}}
			_, _ = conf.Check("snippet", fset, []*ast.File{file}, nil)
		}
	}
}

// parse makes a file of a block.
func parse(fset *token.FileSet, path string, b block, whole bool) (*ast.File, error) {
	text, prelude := b.text(), "package snippet\n"
	if whole {
		return parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	}
	for _, p := range imported[:len(imported)-1] {
		prelude += fmt.Sprintf("import %q\n", p)
	}
	variables := declared
	for _, l := range b.lines {
		if strings.HasPrefix(l.text, "import ") {
			prelude += l.text + "\n"
			text = strings.Replace(text, l.text, "", 1)
			name := l.text[strings.LastIndex(l.text, "/")+1 : len(l.text)-1]
			variables = slices.DeleteFunc(slices.Clone(variables), func(v string) bool { return strings.HasPrefix(v, name+" ") })
		}
	}
	text = fmt.Sprintf("//line %s:%d\n%s", path, b.lines[0].number, text)
	if file, err := parser.ParseFile(fset, "", prelude+text, parser.SkipObjectResolution); err == nil {
		return file, nil
	}
	function := fmt.Sprintf("func _(%s) error {\n%s\nreturn nil\n}", strings.Join(variables, ", "), text)
	return parser.ParseFile(fset, "", prelude+function, parser.SkipObjectResolution)
}

// exportData returns the files that tell the compiler what packages export, by import path.
func exportData(t *testing.T) map[string]string {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, imported...)...)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	files := make(map[string]string)
	for l := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(l), " ")
		files[path] = file
	}
	return files
}
