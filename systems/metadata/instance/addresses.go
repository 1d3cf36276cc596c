package instance

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/linger"
)

// addressPoll is how often the file of the servers' addresses is looked at.
const addressPoll = time.Second

// readAddresses are those of all servers, by name.
func (s *Share) readAddresses() (map[string]string, error) {
	lines := s.Servers
	if s.File != "" {
		text, err := os.ReadFile(s.File)
		if err != nil {
			return nil, fmt.Errorf("reading the servers' addresses: %w", err)
		}
		lines = strings.Split(string(text), "\n")
	}
	all := make(map[string]string)
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if s.File != "" && (line == "" || strings.HasPrefix(line, "#")) {
			continue
		}
		name, addrs, ok := strings.Cut(line, "=")
		if !ok || addrs == "" || all[name] != "" {
			return nil, fmt.Errorf("%w: server %q is not NAME=ADDR[,ADDR...], or is there twice", ErrShare, line)
		}
		all[name] = addrs
	}
	return all, nil
}

// currentAddresses are those in use.
func (s *frontend) currentAddresses() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.addrs)
}

// watchAddressFile follows the file of the servers' addresses, until close. Names do not change: who is to
// join or leave is known to all servers when they start.
func (s *frontend) watchAddressFile(ctx context.Context, share *Share, log *slog.Logger) {
	if share.File == "" {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := s.stop
	s.stop = func() { stop(); ended() }
	s.keeping.Go(func() {
		told := ""
		for linger.For(ctx, addressPoll) == nil {
			next, err := share.readAddresses()
			if err == nil {
				err = s.updateAddresses(next, log)
			}
			if now := fmt.Sprint(err); err != nil && now != told {
				log.Warn("the servers' addresses stay as they were", "file", share.File, "error", err)
				told = now
			} else if err == nil {
				told = ""
			}
		}
	})
}

// updateAddresses has servers be asked at other addresses.
func (s *frontend) updateAddresses(next map[string]string, log *slog.Logger) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, is := slices.Sorted(maps.Keys(s.addrs)), slices.Sorted(maps.Keys(next)); !slices.Equal(was, is) {
		return fmt.Errorf("%w: the servers are %v, not %v: others take a restart", ErrShare, was, is)
	}
	for name, addrs := range next {
		if s.addrs[name] == addrs {
			continue
		}
		log.Info("a server is elsewhere", "server", name, "was", s.addrs[name], "is", addrs)
		s.addrs[name] = addrs
		if c := s.clients[name]; c != nil {
			c.SetAddr(addrs)
		}
		if s.watch != nil {
			s.watch.SetAddr(name, addrs)
		}
	}
	return nil
}
