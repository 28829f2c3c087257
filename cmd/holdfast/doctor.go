package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
)

func (a *app) doctorCommand() *cobra.Command {
	var strict bool
	var lease time.Duration
	cmd := &cobra.Command{
		Use: "doctor", Args: cobra.NoArgs,
		Short: "Find out whether a Redis is fit for locks, and what to change",
		Long: `Find out whether a Redis is fit for locks, and what to change: that it can be reached, its version, the rights of the
user, that messages arrive, eviction, memory, persistence, replication, Sentinel and Cluster, the clocks of its servers,
and the round trip with the leases that it allows. Run it as the user and from the machines that will lock.

  ok    is fine
  note  could not be seen, or does not matter to locks
  warn  should be changed: locks work, but can be lost in a case that is said
  fail  must be changed

It asks, takes a lock of a random name below the prefix a few times, and changes nothing. Where CONFIG or INFO are
denied, as on managed services, it says what could not be seen.

The exit status is 3 if anything is "fail", with --strict also if anything is "warn".`,
		Example: `  holdfast doctor
  holdfast doctor --lease 5s --strict
  REDIS_URL=rediss://app:secret@redis.example.com holdfast doctor --json | jq '.findings[] | select(.level == "fail")'`,
	}
	a.jsonFlag(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 3 for warnings, too")
	cmd.Flags().DurationVar(&lease, "lease", 30*time.Second, "the shortest lease that will be used")
	cmd.RunE = a.work(func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		report, err := a.examine(ctx, lease)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return silent(exitSignal + int(syscall.SIGINT))
		}
		if a.json {
			err = printJSON(a.out, report)
		} else {
			a.printReport(report)
		}
		if err == nil && (report.count(doctor.Fail) > 0 || strict && report.count(doctor.Warn) > 0) {
			return silent(exitNo)
		}
		return err
	})
	return cmd
}

// report is what doctor prints.
type report struct {
	Address  string           `json:"address"`
	Findings []doctor.Finding `json:"findings"`
}

func (r *report) count(level doctor.Level) int {
	n := 0
	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// examine connects and looks. That nothing answers is a finding, too.
func (a *app) examine(ctx context.Context, lease time.Duration) (*report, error) {
	s, err := a.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.close(time.Second) }() // nothing is held
	r := &report{Address: s.Address}
	if err := s.ping(ctx, a.connect.Timeout); err != nil {
		r.Findings = []doctor.Finding{{Check: "connection", Level: doctor.Fail, Text: errors.Unwrap(err).Error(), Remedy: hint(err)}}
		return r, nil
	}
	r.Findings = append(r.Findings, doctor.Finding{Check: "connection", Level: doctor.OK, Text: s.Address + " answers"})
	r.Findings = append(r.Findings, doctor.Examine(ctx, doctor.Patient{Target: s.Target, Prefix: s.prefix, Lease: lease})...)
	return r, nil
}

func (a *app) printReport(r *report) {
	for _, f := range r.Findings {
		fmt.Fprintf(a.out, "%-4s  %-11s  %s\n", f.Level, f.Check, f.Text)
		if f.Remedy != "" {
			fmt.Fprintf(a.out, "%19s→ %s\n", "", f.Remedy)
		}
	}
	fmt.Fprintf(a.out, "\n%d fail, %d warn, %d ok\n", r.count(doctor.Fail), r.count(doctor.Warn), r.count(doctor.OK))
}
