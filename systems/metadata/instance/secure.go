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

// Security configures authentication of clients, servers and replicas.
type Security struct {
	// Certificate, Key and Authority are files for mutual TLS between replicas, which otherwise use plain TCP.
	Certificate, Key, Authority string
	// TLS serves clients and other servers by https with the certificate.
	TLS bool
	// Tokens is a file of bearer tokens, or bearer.Auto. Without tokens, every client may do everything.
	Tokens string
	// Insecure allows unprotected addresses beyond this machine.
	Insecure bool
}

type credentials struct {
	id     *ca.Identity // nil without a certificate
	tls    bool
	tokens *bearer.Tokens
}

// load reads the files. It refuses unprotected addresses beyond this machine: the client address listen requires tokens,
// the replica address peer (if not "") requires certificates.
func (s Security) load(listen, peer string) (k credentials, err error) {
	k.tls = s.TLS
	if s.Certificate != "" {
		id, err := ca.Load(s.Certificate, s.Key, s.Authority, time.Now())
		if err != nil {
			return k, err
		}
		k.id = &id
	} else if s.TLS {
		return k, advice.With(fmt.Errorf("%w: TLS needs a certificate", ErrGroup), "give --cert, --key and --ca; hydra init creates them")
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
		return k, advice.With(err,
			"create tokens and certificates with `hydra init` and give --tokens FILE (and --tls), or --insecure on a trusted network")
	}
	if peer != "" {
		if err := bearer.CheckExposure(peer, k.id != nil, true); err != nil {
			return k, advice.With(fmt.Errorf("for other replicas: %w", err),
				"give --cert, --key and --ca (hydra init creates them), or --insecure on a trusted network")
		}
	}
	return k, nil
}

func (k credentials) listener(l net.Listener) net.Listener {
	if !k.tls {
		return l
	}
	return tls.NewListener(l, k.id.Front(nil))
}

func (k credentials) hosts() []string {
	if !k.tls {
		return nil
	}
	return k.id.Hosts()
}

// clientOptions configures clients of other servers that share the tree: same tokens, certificates of the same authority.
func (k credentials) clientOptions() []client.Option {
	all := []client.Option{client.Token(k.tokens.TokenFor(bearer.Write))}
	if k.tls {
		all = append(all, client.TLS(k.id.Trust))
	}
	return all
}

// ErrStranger means that a replica to add has no certificate of the cluster.
var ErrStranger = errors.New("no certificate of the cluster for this replica")

const handshakeTime = 5 * time.Second

// checkCertificate requires the cluster's certificate for a new replica's name and address before it gets the log.
func (k credentials) checkCertificate(ctx context.Context, name, addr string) error {
	if k.id == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	d := tls.Dialer{Config: k.id.Client(nil, ca.Member)()}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return advice.With(fmt.Errorf("replica %s at %s: %w: %w", name, addr, ErrStranger, err),
			"start the replica first, with --join and the certificate that `hydra init` created for its name and address")
	}
	defer conn.Close()
	shown := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	if shown != name {
		return fmt.Errorf("replica %s at %s: %w: it is %s", name, addr, ErrStranger, shown)
	}
	return nil
}
