package linkbench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/link/probe"
)

// pingTimeout is how long an answer is waited for.
const pingTimeout = 2 * time.Second

// ping sends echo requests along pairs as a program does that waits for each answer, and takes
// the time by that program's clock: its own way through the scheduler counts. The pairs'
// requests are spread over the interval.
func ping(ctx context.Context, pairs []probe.Pair, count int, interval time.Duration) ([][]time.Duration, error) {
	all := make([][]time.Duration, len(pairs))
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now().Add(50 * time.Millisecond)
	for i, p := range pairs {
		group.Go(func() (err error) {
			first := begin.Add(interval * time.Duration(i) / time.Duration(len(pairs)))
			all[i], err = pingOne(ctx, p, uint16(i), first, count, interval)
			return err
		})
	}
	return all, group.Wait()
}

// pingOne does so for one pair; id tells its answers from those of others on the same node.
func pingOne(ctx context.Context, p probe.Pair, id uint16, first time.Time, count int, interval time.Duration) (took []time.Duration, err error) {
	to, err := netip.ParseAddr(p.To.Addr())
	if err != nil {
		return nil, fmt.Errorf("ping: %w", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd := -1
	err = p.From.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ping %s: %w", to, err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	limit := unix.NsecToTimeval(int64(pingTimeout))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, fmt.Errorf("ping %s: %w", to, err)
	}
	if err := answersTo(fd, id); err != nil {
		return nil, fmt.Errorf("ping %s: %w", to, err)
	}
	at := &unix.SockaddrInet4{Addr: to.As4()}
	for n := range count {
		if err := linger.For(ctx, time.Until(first.Add(time.Duration(n)*interval))); err != nil {
			return took, err
		}
		d, err := echo(fd, at, id, uint16(n))
		if err != nil {
			return took, fmt.Errorf("ping %s: %w", to, err)
		}
		took = append(took, d)
	}
	return took, nil
}

// answersTo has the kernel hand a raw socket of ICMP the answers with an identifier alone: others would
// wake up who waits for its own.
func answersTo(fd int, id uint16) error {
	const ipHeader, identifier, all = 20, 4, 0xffff
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: ipHeader + identifier},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(id)},
		{Code: unix.BPF_RET | unix.BPF_K, K: all},
		{Code: unix.BPF_RET | unix.BPF_K},
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// echo sends one request of 84 bytes and waits for its answer.
func echo(fd int, to *unix.SockaddrInet4, id, seq uint16) (time.Duration, error) {
	var request [64]byte
	var answer [2048]byte
	const echoRequest, echoReply, ipHeader = 8, 0, 20
	request[0] = echoRequest
	binary.BigEndian.PutUint16(request[4:], id)
	binary.BigEndian.PutUint16(request[6:], seq)
	sum := uint32(request[0])<<8 + uint32(id) + uint32(seq)
	binary.BigEndian.PutUint16(request[2:], ^uint16(sum>>16+sum&0xffff))
	begin := time.Now()
	if err := unix.Sendto(fd, request[:], 0, to); err != nil {
		return 0, err
	}
	for {
		n, _, err := unix.Recvfrom(fd, answer[:], 0)
		took := time.Since(begin)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == ipHeader+len(request) && answer[ipHeader] == echoReply && binary.BigEndian.Uint16(answer[ipHeader+6:]) == seq &&
			[4]byte(answer[12:16]) == to.Addr:
			return took, nil
		}
	}
}
