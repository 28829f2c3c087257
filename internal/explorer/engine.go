package explorer

import (
	"errors"
	"fmt"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// Engine runs the scripts against a Server. Not safe for concurrent use.
type Engine struct {
	Server  *Server
	lua     *lua.LState
	scripts map[string]*lua.LFunction
}

// NewEngine compiles source for an empty Server.
func NewEngine(source Source) (*Engine, error) {
	e := &Engine{Server: &Server{}, lua: lua.NewState(), scripts: map[string]*lua.LFunction{}}
	redis := e.lua.NewTable()
	e.lua.SetField(redis, "call", e.lua.NewFunction(func(l *lua.LState) int { return e.call(l, true) }))
	e.lua.SetField(redis, "pcall", e.lua.NewFunction(func(l *lua.LState) int { return e.call(l, false) }))
	e.lua.SetField(redis, "error_reply", e.lua.NewFunction(func(l *lua.LState) int {
		l.Push(e.errorReply(l.CheckString(1)))
		return 1
	}))
	e.lua.SetGlobal("redis", redis)
	for name, text := range source {
		script, err := e.lua.LoadString(text)
		if err != nil {
			return nil, fmt.Errorf("script %s: %w", name, err)
		}
		e.scripts[name] = script
	}
	return e, nil
}

// Close frees the interpreter.
func (e *Engine) Close() { e.lua.Close() }

// Run runs one script and returns its reply: int64, string, nil, or []any of them. As in Redis, what a
// script wrote before it failed stays.
func (e *Engine) Run(script string, keys, argv []string) (any, error) {
	e.Server.begin()
	e.lua.SetGlobal("KEYS", e.strings(keys))
	e.lua.SetGlobal("ARGV", e.strings(argv))
	if err := e.lua.CallByParam(lua.P{Fn: e.scripts[script], NRet: 1, Protect: true}); err != nil {
		var thrown *lua.ApiError
		if errors.As(err, &thrown) {
			if table, ok := thrown.Object.(*lua.LTable); ok {
				return nil, errors.New(table.RawGetString("err").String())
			}
		}
		return nil, err
	}
	reply := e.lua.Get(-1)
	e.lua.Pop(1)
	return fromLua(reply)
}

func (e *Engine) call(l *lua.LState, throw bool) int {
	args := make([]string, l.GetTop())
	for i := range args {
		args[i] = argument(l.Get(i + 1))
	}
	reply, err := e.Server.do(args)
	if err != nil {
		table := e.errorReply(err.Error())
		if throw {
			l.Error(table, 1)
		}
		l.Push(table)
		return 1
	}
	l.Push(e.toLua(reply))
	return 1
}

// argument formats a command's argument as Redis does.
func argument(v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return strconv.FormatFloat(float64(n), 'g', 17, 64)
	}
	return v.String()
}

func (e *Engine) errorReply(text string) *lua.LTable {
	table := e.lua.NewTable()
	table.RawSetString("err", lua.LString(text))
	return table
}

func (e *Engine) strings(list []string) *lua.LTable {
	table := e.lua.CreateTable(len(list), 0)
	for _, s := range list {
		table.Append(lua.LString(s))
	}
	return table
}

func (e *Engine) toLua(reply any) lua.LValue {
	switch r := reply.(type) {
	case int64:
		return lua.LNumber(r)
	case string:
		return lua.LString(r)
	case []any:
		table := e.lua.CreateTable(len(r), 0)
		for i, item := range r {
			table.RawSetInt(i+1, e.toLua(item))
		}
		return table
	}
	return lua.LFalse
}

func fromLua(v lua.LValue) (any, error) {
	switch v := v.(type) {
	case lua.LNumber:
		return int64(v), nil
	case lua.LString:
		return string(v), nil
	case *lua.LTable:
		if text := v.RawGetString("err"); text != lua.LNil {
			return nil, errors.New(text.String())
		}
		var list []any
		for i := 1; v.RawGetInt(i) != lua.LNil; i++ {
			item, err := fromLua(v.RawGetInt(i))
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		return list, nil
	}
	return nil, nil
}
