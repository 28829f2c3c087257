package main

import (
	"os"
	"os/exec"
)

var signalsToPass = []os.Signal{os.Interrupt}

func prepare(*exec.Cmd) (group bool) { return false }

// pass does nothing: what the console sends has reached the command already.
func pass(*os.Process, os.Signal, bool) {}

// terminate kills, as Windows has no gentler way.
func terminate(p *os.Process, group bool) { kill(p, group) }

func kill(p *os.Process, _ bool) { _ = p.Kill() } // it may have ended already

func groupAlive(*os.Process) bool { return false }

func signaled(*os.ProcessState) (int, bool) { return 0, false }
