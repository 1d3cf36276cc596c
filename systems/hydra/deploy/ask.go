package deploy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"skerry/internal/base/dialtls"
	"skerry/systems/hydra/hydraclient"
)

const (
	askTimeout = time.Second
	// nameTimeout bounds a DNS query if the caller's deadline is later. A starved machine may need seconds.
	nameTimeout = 10 * time.Second
)

// CheckReady returns an error until the service is ready. reach configures connections to members.
func (s Service) CheckReady(ctx context.Context, reach hydraclient.Config) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if s.Kind == DNSServer {
		at, err := url.Parse(s.Ready)
		if err != nil {
			return fmt.Errorf("parsing the address of the DNS server: %w", err)
		}
		_, err = Lookup(ctx, s.Host.Dial, at.Host, at.Path[1:])
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Ready, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DisableKeepAlives: true, DialTLSContext: dialtls.DialContext(s.Host.Dial, reach.TLS), DialContext: s.Host.Dial,
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s answered %s", s.Ready, resp.Status)
	}
	return err
}

var errNoAddress = errors.New("no address is known")

// Lookup queries a DNS server over a connection from dial. It returns the addresses of a name in the
// order of the response. It waits until ctx's deadline, ten seconds at most.
func Lookup(ctx context.Context, dial func(ctx context.Context, network, addr string) (net.Conn, error), server,
	name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	conn, err := dial(ctx, "tcp", server)
	if err != nil {
		return nil, fmt.Errorf("connecting to the DNS server: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, fmt.Errorf("querying the DNS server at %s: %w", server, err)
	}
	response, err := queryAddresses(conn, name)
	if err != nil {
		return nil, fmt.Errorf("querying the DNS server at %s for %s: %w", server, name, err)
	}
	var all []netip.Addr
	for _, r := range response.Answers {
		if a, ok := r.Body.(*dnsmessage.AResource); ok {
			all = append(all, netip.AddrFrom4(a.A))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("querying the DNS server at %s for %s: %w (%s)", server, name, errNoAddress, response.RCode)
	}
	return all, nil
}

// queryAddresses sends a query for the IPv4 addresses of a name, and reads the response. Over TCP, a
// message follows its length in two bytes.
func queryAddresses(conn net.Conn, name string) (dnsmessage.Message, error) {
	var response dnsmessage.Message
	absolute, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	if err != nil {
		return response, err
	}
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{RecursionDesired: true}, // the connection carries one query: its ID can be 0
		Questions: []dnsmessage.Question{{Name: absolute, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	packet, err := query.AppendPack(make([]byte, 2))
	if err != nil {
		return response, err
	}
	binary.BigEndian.PutUint16(packet, uint16(len(packet)-2))
	if _, err := conn.Write(packet); err != nil {
		return response, err
	}
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return response, err
	}
	packet = make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, packet); err != nil {
		return response, err
	}
	return response, response.Unpack(packet)
}
