package instance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/bearer"
	"skerry/systems/consensus/ca"
	"skerry/systems/metadata/client"
)

// Security is who may ask a server, and how the others know it.
type Security struct {
	// Certificate, Key and Authority are files for mutual TLS between replicas; without them what
	// they send is neither secret nor authentic.
	Certificate, Key, Authority string
	// TLS serves clients, and other servers, by https with the certificate.
	TLS bool
	// Tokens is a file of bearer tokens, or bearer.Auto; without them everybody may do everything.
	Tokens string
	// Insecure allows addresses beyond this machine without what protects them.
	Insecure bool
}

// credentials is what Security's files say.
type credentials struct {
	id     *ca.Identity // nil without a certificate
	tls    bool
	tokens *bearer.Tokens
}

// load reads the files, and refuses addresses that others reach without protection: what is
// listened on for clients needs tokens, and what is for replicas (none: "") certificates.
func (s Security) load(listen, peer string) (k credentials, err error) {
	k.tls = s.TLS
	if s.Certificate != "" {
		id, err := ca.Load(s.Certificate, s.Key, s.Authority, time.Now())
		if err != nil {
			return k, err
		}
		k.id = &id
	} else if s.TLS {
		return k, advice.With(fmt.Errorf("%w: TLS without a certificate", ErrGroup), "give --cert, --key and --ca; hydra init makes them")
	}
	if s.Tokens != "" {
		if k.tokens, err = bearer.Load(s.Tokens); err != nil {
			return k, err
		}
	}
	if s.Insecure {
		return k, nil
	}
	if err := bearer.CheckExposure(listen, true, k.tokens != nil); err != nil {
		return k, advice.With(err, "make tokens and certificates with `hydra init` and give --tokens FILE (and --tls), or say --insecure on a network that you trust")
	}
	if peer != "" {
		if err := bearer.CheckExposure(peer, k.id != nil, true); err != nil {
			return k, advice.With(fmt.Errorf("for other replicas: %w", err), "give --cert, --key and --ca; hydra init makes them; or say --insecure on a network that you trust")
		}
	}
	return k, nil
}

// listener is that of clients.
func (k credentials) listener(l net.Listener) net.Listener {
	if !k.tls {
		return l
	}
	return tls.NewListener(l, k.id.Front(nil))
}

// hosts are the names that the certificate is for.
func (k credentials) hosts() []string {
	if !k.tls {
		return nil
	}
	return k.id.Hosts()
}

// clientOptions are what this server asks others with that share its tree: they have the same tokens, and
// certificates of the same authority.
func (k credentials) clientOptions() []client.Option {
	all := []client.Option{client.Token(k.tokens.Own(bearer.Write))}
	if k.tls {
		all = append(all, client.TLS(k.id.Trust))
	}
	return all
}

// ErrStranger means that a replica that is to be added is not one of the cluster.
var ErrStranger = errors.New("not a member of the cluster by its certificate")

// handshakeTime bounds the look at a certificate.
const handshakeTime = 5 * time.Second

// checkCertificate looks, with TLS between replicas, at the certificate that is shown at an address: the
// cluster's, of a member of that name, for that address. The log is sent there next.
func (k credentials) checkCertificate(ctx context.Context, name, addr string) error {
	if k.id == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	d := tls.Dialer{Config: k.id.Client(nil, ca.Member)()}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return advice.With(fmt.Errorf("replica %s at %s: %w: %w", name, addr, ErrStranger, err), "start it first, with --join and the certificate that `hydra init` made for its name and address")
	}
	defer conn.Close()
	shown := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	if shown != name {
		return fmt.Errorf("replica %s at %s: %w: it is %s", name, addr, ErrStranger, shown)
	}
	return nil
}
