package inventory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Shell is the program with its arguments that runs a line of POSIX shell on the machine, with
// its standard input and output. ErrNoShell for one that is reached by a command of its own.
func (m Machine) Shell(line string) ([]string, error) {
	switch {
	case m.SSH != nil:
		// The login shell there may be any.
		return append(m.SSH.command(), "exec /bin/sh -c "+Quote(line)), nil
	case m.Kubernetes != nil:
		return append(m.Kubernetes.exec(m.pod), "/bin/sh", "-c", line), nil
	}
	return nil, fmt.Errorf("running a command on %s: %w", m.Name, ErrNoShell)
}

// Terminal is Shell with a terminal on the machine, like the one that it is run in.
func (m Machine) Terminal(line string) ([]string, error) {
	argv, err := m.Shell(line)
	switch {
	case err != nil:
		return nil, err
	case m.SSH != nil: // the last of -T and -t holds
		return slices.Insert(argv, slices.Index(argv, "-T")+1, "-t"), nil
	}
	return slices.Insert(argv, slices.Index(argv, "exec")+1, "-t"), nil
}

// Quote makes a text one word of a shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// connectSeconds is how long a machine may take to answer: one that is out of reach is told soon.
const connectSeconds = 15

func (s SSH) command() []string {
	args := []string{"ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ConnectTimeout=" + strconv.Itoa(connectSeconds)}
	for _, o := range s.Options {
		args = append(args, "-o", o)
	}
	for _, given := range [][2]string{{"-F", s.Config}, {"-i", s.Identity}, {"-l", s.User}} {
		if given[1] != "" {
			args = append(args, given[0], given[1])
		}
	}
	if s.Port != 0 {
		args = append(args, "-p", strconv.Itoa(s.Port))
	}
	return append(args, s.Host)
}
