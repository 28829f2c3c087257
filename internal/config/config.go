// Package config holds what the options of holdfast.New set. It is internal so that the library's own tests
// can set more than users can.
package config

import (
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/hold"
)

// Config is the settings of one client.
type Config struct {
	Prefix   string
	Label    string
	Logger   *slog.Logger
	Observer *hold.Observer
	PollOnly bool
	Defaults []hold.Option
	Err      error // what is wrong with an option

	// For tests.
	Window time.Duration // for which a waiting client counts as alive; it polls every third of it
	Claim  time.Duration // how long a pushed grant lasts
	Ping   time.Duration // of the subscription
	Stacks bool          // record where holds are taken
	Hall   func(hall any)
}
