// Package scripts holds the four Lua scripts that are the protocol, and calls them: each attempt is sent
// once, never re-sent behind our back, and every failure tells whether the script may have run.
package scripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
)

// Files are the Lua sources. A line "-- include NAME" stands for the file NAME.lua.
//
//go:embed *.lua
var Files embed.FS

// Source returns the text of a script with its includes resolved, as it is sent to Redis.
func Source(name string) string {
	var b strings.Builder
	for line := range strings.Lines(read(name)) {
		if part, ok := strings.CutPrefix(strings.TrimSpace(line), "-- include "); ok {
			b.WriteString(Source(part))
			continue
		}
		b.WriteString(line)
	}
	return strip(b.String())
}

func read(name string) string {
	text, err := Files.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("scripts: %v", err)) // embedded: cannot happen
	}
	return string(text)
}

// strip drops comment lines and empty lines, which Redis need not keep.
func strip(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if code := strings.TrimSpace(line); code != "" && !strings.HasPrefix(code, "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

type script struct {
	text, sha string
	hash      any // sha, as an argument
}

func load(name string) script {
	text := Source(name)
	sum := sha1.Sum([]byte(text))
	sha := hex.EncodeToString(sum[:])
	return script{text: text, sha: sha, hash: sha}
}

var (
	acquireScript = load("acquire")
	releaseScript = load("release")
	renewScript   = load("renew")
	manyScript    = load("renewals")
	inspectScript = load("inspect")
)

// SHAs returns the hashes under which Redis caches the scripts, by name.
func SHAs() map[string]string {
	return map[string]string{
		"acquire":  acquireScript.sha,
		"release":  releaseScript.sha,
		"renew":    renewScript.sha,
		"renewals": manyScript.sha,
		"inspect":  inspectScript.sha,
	}
}
