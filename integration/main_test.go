// Package integration holds the scenarios of the library against real servers: see package server for where
// those come from, fault for how they are made to fail, and worker for other processes.
package integration

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/worker"
)

func TestMain(m *testing.M) {
	worker.Main()
	code := m.Run()
	server.StopShared()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Println("goroutines left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}
