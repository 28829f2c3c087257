// Package worker runs functions of a test in processes of their own, which a
// test can freeze and kill as it could no goroutine. The processes run the test
// binary itself, so a worker is instrumented like its test (-race) and needs no
// building.
//
//	func init() { worker.Register("locker", locker) }
//
//	func locker(args []string) error { … fmt.Println("locked") … }
//
//	func TestMain(m *testing.M) {
//		worker.Main() // does not return in a worker
//		os.Exit(m.Run())
//	}
//
//	func TestKilledHolderIsReplaced(t *testing.T) {
//		p := worker.Spawn(t, "locker", srv.Addr())
//		<-p.Lines() // "locked"
//		p.Kill()
//		…
//	}
package worker
