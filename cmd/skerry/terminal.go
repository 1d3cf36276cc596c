package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"skerry/internal/base/progress"
)

// progress goes to the terminal behind stderr, if it is one.
func (a *app) progress() *progress.Reporter { return a.reporter }

func reporter(w io.Writer) *progress.Reporter {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return progress.New(w, nil)
	}
	return progress.New(f, func() int {
		cols, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return cols
	})
}

// width is that of the terminal behind stdout, 0 when it is none.
func (a *app) width() int {
	if f, ok := a.out.(*os.File); ok {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil {
			return cols
		}
	}
	return 0
}
