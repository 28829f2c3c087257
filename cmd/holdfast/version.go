package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version = ""

// versionJSON is what version prints.
type versionJSON struct {
	Version string `json:"version"`
	Library string `json:"library"`
	GoRedis string `json:"go_redis"`
	Go      string `json:"go"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Args: cobra.NoArgs,
		Short:   "Show the versions of the command and of what it is built from",
		Example: "  holdfast version --json",
		RunE: a.work(func(*cobra.Command, []string) error {
			v := versions()
			if a.json {
				return printJSON(a.out, v)
			}
			fmt.Fprintf(a.out, "holdfast %s (library %s, go-redis %s, %s)\n", v.Version, v.Library, v.GoRedis, v.Go)
			return nil
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func versions() versionJSON {
	v := versionJSON{Version: version, Library: "unknown", GoRedis: "unknown", Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, dep := range info.Deps {
			switch dep.Path {
			case "github.com/holdfast-go/holdfast":
				v.Library = dep.Version
			case "github.com/redis/go-redis/v9":
				v.GoRedis = dep.Version
			}
		}
	}
	return v
}
