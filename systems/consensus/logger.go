package consensus

import (
	"context"
	"fmt"
	"log/slog"
)

// raftLogger is where the raft library writes; its every step is for debugging only. It
// panics, as the library expects, when raft's invariants are broken: the driver stops the
// node then.
type raftLogger struct{ *slog.Logger }

// broken is what such a panic carries.
type broken struct{ why string }

func (l raftLogger) Debug(v ...any)              {}
func (l raftLogger) Debugf(string, ...any)       {}
func (l raftLogger) Warning(v ...any)            { l.Logger.Warn("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Warningf(f string, v ...any) { l.Logger.Warn("raft: " + fmt.Sprintf(f, v...)) }
func (l raftLogger) Error(v ...any)              { l.Logger.Error("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Errorf(f string, v ...any)   { l.Logger.Error("raft: " + fmt.Sprintf(f, v...)) }
func (l raftLogger) Fatal(v ...any)              { panic(broken{fmt.Sprint(v...)}) }
func (l raftLogger) Fatalf(f string, v ...any)   { panic(broken{fmt.Sprintf(f, v...)}) }
func (l raftLogger) Panic(v ...any)              { panic(broken{fmt.Sprint(v...)}) }
func (l raftLogger) Panicf(f string, v ...any)   { panic(broken{fmt.Sprintf(f, v...)}) }

func (l raftLogger) Info(v ...any) { l.Infof("%s", fmt.Sprint(v...)) }
func (l raftLogger) Infof(f string, v ...any) {
	if l.Logger.Enabled(context.Background(), slog.LevelDebug) {
		l.Logger.Debug("raft: " + fmt.Sprintf(f, v...))
	}
}
