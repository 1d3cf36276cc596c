package all

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	clientv3 "go.etcd.io/etcd/client/v3"

	"skerry/internal/base/advice"
	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/database/etcd"
	"skerry/internal/database/external"
	"skerry/internal/database/galera"
	"skerry/internal/database/postgres"
	"skerry/internal/database/redis"
	"skerry/internal/load"
	"skerry/systems/consensus/ca"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// passwordVariable is the variable with the password in these tests.
const passwordVariable = "SKERRY_TEST_DATABASE_PASSWORD"

// secured is a server that requires TLS and a password.
type secured struct {
	t        *testing.T
	dir      string // certificates: ca.crt, server.crt, client.crt and their keys
	user     string
	password string
	// properties are further properties of clients.
	properties map[string]string
}

// newSecured makes a password and the certificates of a server at host.
func newSecured(t *testing.T, host string) secured {
	t.Helper()
	s := secured{t: t, user: "secured", dir: filepath.Join(t.TempDir(), "certificates"), password: rand.Text()}
	s.issue(s.dir, host)
	return s
}

// issue makes an authority in dir, and certificates of a server at host and of a client.
func (s secured) issue(dir, host string) {
	s.t.Helper()
	a, err := ca.Init(dir, "test", 1, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, subject := range []ca.Subject{{Name: "server", Hosts: []string{host}}, {Name: "client"}} {
		if err := a.Issue(subject, 1, time.Now()); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s secured) file(name string) string { return filepath.Join(s.dir, name) }

// access returns a login with everything that the server requires.
func (s secured) access() database.Access {
	return database.Access{
		User: s.user, Password: database.PasswordSpec{Env: passwordVariable},
		TLS: database.TLSSpec{Enabled: true, CA: "ca.crt", Certificate: "client.crt", Key: "client.key"},
	}
}

// start starts a server's program and waits until it accepts connections.
func (s secured) start(addr string, cmd *exec.Cmd) {
	s.t.Helper()
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // killed
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ended:
			s.t.Fatalf("%s ended: %s", cmd.Path, said.String())
		default:
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s accepts no connections", cmd.Path)
		}
	}
}

func (s secured) external(db database.Database, addr string, a database.Access) *external.Database {
	s.t.Helper()
	d, err := external.New(db, external.ClusterSpec{
		Servers: []string{addr}, Timeout: unit.Duration(time.Second), Access: a, Properties: s.properties,
	}, s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// check uses the server as an experiment does: with its secrets, after a killed run with and without them, and with wrong ones.
func (s secured) check(newDatabase func() database.Database, addr string) {
	t := s.t
	t.Setenv(passwordVariable, s.password)
	db := newDatabase()
	d := s.external(db, addr, s.access())
	if mistakes := d.CheckAccess(); len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	root := filepath.Join(t.TempDir(), "clusters")
	start := func(name string) (*external.Scratch, database.Cluster) {
		t.Helper()
		scratch, err := external.NewScratch(t.Context(), root, name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.Start(t.Context(), database.Env{Scratch: scratch.Dir()})
		if err != nil {
			t.Fatalf("%v; %s", err, advice.Of(err))
		}
		s.fill(d, c)
		return scratch, c
	}
	scratch, c := start("ended")
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := scratch.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}

	scratch, c = start("killed")
	if err := scratch.Release(context.WithoutCancel(t.Context())); err != nil { // as the kernel does when the process exits
		t.Fatal(err)
	}
	table := c.Properties()[database.PropTable]
	if text := s.read(filepath.Join(root, "killed", "table.json")); !strings.Contains(text, passwordVariable) || strings.Contains(text, s.password) {
		t.Errorf("the scratch directory still contains %s", text)
	}
	os.Unsetenv(passwordVariable)
	sweep := func() ([]string, error) {
		return external.Sweep(t.Context(), root, map[string]database.Database{db.Name(): newDatabase()})
	}
	swept, err := sweep()
	if err == nil || len(swept) > 0 {
		t.Fatalf("without the variable, Sweep dropped %v", swept)
	}
	for _, want := range []string{table, db.Name(), addr, passwordVariable + " is not set"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Sweep without the variable: %v, want %s", err, want)
		}
	}
	if next := advice.Of(err); !strings.Contains(next, filepath.Join(root, "killed")) {
		t.Errorf("Sweep without the variable advises %q", next)
	}
	t.Setenv(passwordVariable, s.password)
	if swept, err = sweep(); err != nil || len(swept) != 1 || !strings.HasSuffix(swept[0], ": "+table) {
		t.Errorf("Sweep dropped %v, want %s: %v", swept, table, err)
	}
	s.checkRefusals(newDatabase, addr)
}

func (s secured) read(file string) string {
	s.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// fill inserts and counts records, and reads one, in a second client.
func (s secured) fill(d *external.Database, c database.Cluster) {
	s.t.Helper()
	client, err := d.Open(s.t.Context(), c.Properties())
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	table := c.Properties()[database.PropTable]
	const records = 20
	for i := range records {
		fields := []load.Field{{Name: "field0", Value: []byte("value")}}
		if err := client.Insert(s.t.Context(), table, fmt.Sprint("user", i), fields); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := client.Read(s.t.Context(), table, "user7", nil, nil); err != nil {
		s.t.Error(err)
	}
	if n, err := c.Count(s.t.Context()); err != nil || n != records {
		s.t.Errorf("%d records, want %d: %v", n, records, err)
	}
}

// checkRefusals logs in with wrong settings. Each error names the server and says what to change.
func (s secured) checkRefusals(newDatabase func() database.Database, addr string) {
	other := filepath.Join(s.t.TempDir(), "other")
	s.issue(other, "127.0.0.1")
	wrong := rand.Text()
	if err := os.WriteFile(s.file("wrong"), []byte(wrong+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	for _, tt := range []struct {
		name        string
		change      func(a *database.Access)
		explanation string
	}{
		{"wrong password", func(a *database.Access) { a.Password = database.PasswordSpec{File: "wrong"} }, "user, password"},
		{"no TLS", func(a *database.Access) { a.TLS = database.TLSSpec{} }, "database.cluster"},
		{"another authority", func(a *database.Access) { a.TLS.CA = filepath.Join(other, "ca.crt") }, "tls: {ca: FILE}"},
		{"another name", func(a *database.Access) { a.TLS.ServerName = "elsewhere.example" }, "tls: {server_name: NAME}"},
	} {
		a := s.access()
		tt.change(&a)
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		_, err := s.external(newDatabase(), addr, a).Start(ctx, database.Env{Scratch: s.t.TempDir()})
		cancel()
		if err == nil {
			s.t.Errorf("%s: the server serves", tt.name)
			continue
		}
		if !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), tt.explanation) {
			s.t.Errorf("%s: %v, want %q", tt.name, err, tt.explanation)
		}
		if strings.Contains(err.Error(), s.password) || strings.Contains(err.Error(), wrong) {
			s.t.Errorf("%s: the error contains the password", tt.name)
		}
	}
}

func TestAccessToRedis(t *testing.T) {
	testkit.Need(t, testkit.Installed(redis.Recipe))
	in, err := redis.New().Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	addr := testkit.Address(t)
	host, port, _ := net.SplitHostPort(addr)
	s := newSecured(t, host)
	cmd := exec.Command(in.Programs["redis-server"], "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf("bind %s\nport 0\ntls-port %s\nsave ''\ndir %s\nrequirepass %s\nuser %s on >%s ~* &* +@all\n"+
		"tls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\ntls-auth-clients yes\n",
		host, port, t.TempDir(), s.password, s.user, s.password, s.file("server.crt"), s.file("server.key"), s.file("ca.crt")))
	cmd.Env, cmd.Dir = append(cmd.Environ(), in.Env...), t.TempDir()
	s.start(addr, cmd)
	s.check(func() database.Database { return redis.New() }, addr)

	t.Run("password without a user", func(t *testing.T) {
		a := s.access()
		a.User = ""
		d := s.external(redis.New(), addr, a)
		c, err := d.Start(t.Context(), database.Env{Scratch: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		s.fill(d, c)
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAccessToEtcd(t *testing.T) {
	testkit.Need(t, testkit.Installed(etcd.Recipe))
	in, err := etcd.New().Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	addr, peer := testkit.Address(t), "http://"+testkit.Address(t)
	host, _, _ := net.SplitHostPort(addr)
	s := newSecured(t, host)
	cmd := exec.Command(in.Programs["etcd"], "--data-dir", filepath.Join(t.TempDir(), "data"), "--name", "n1",
		"--listen-client-urls", "https://"+addr, "--advertise-client-urls", "https://"+addr,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "n1="+peer,
		"--cert-file", s.file("server.crt"), "--key-file", s.file("server.key"), "--trusted-ca-file", s.file("ca.crt"), "--client-cert-auth")
	cmd.Env = append(cmd.Environ(), in.Env...)
	s.start(addr, cmd)
	pair, err := tls.LoadX509KeyPair(s.file("client.crt"), s.file("client.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(s.read(s.file("ca.crt"))))
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + addr},
		TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, user := range []string{"root", s.user} {
		if _, err = admin.UserAdd(t.Context(), user, s.password); err != nil {
			t.Fatal(err)
		}
		if _, err = admin.UserGrantRole(t.Context(), user, "root"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = admin.AuthEnable(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.check(func() database.Database { return etcd.New() }, addr)
}

// TestAccessToPostgres changes a server that Skerry started into one that requires TLS and a SCRAM password of its user.
func TestAccessToPostgres(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.Installed(postgres.Recipe))
	nodes := testhost.Loopback(t, 1)
	c := dbtest.Start(t, postgres.New(), database.Env{Nodes: nodes})
	addr := c.Properties()[postgres.PropHosts]
	host, _, _ := net.SplitHostPort(addr)
	s := newSecured(t, host)
	dir := filepath.Join(nodes[0].Dir(), postgres.Name)
	s.copyToServer(dir, "server.crt", "server.key", "ca.crt")
	admin, err := pgconn.Connect(t.Context(), "postgres://postgres@"+addr+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	// The last line is for the test's own cluster.
	access := "hostssl all " + s.user + " all scram-sha-256 clientcert=verify-ca\nhost all " + s.user + " all reject\n" +
		"host all all all trust\nhost replication all all trust\n"
	if err := os.WriteFile(filepath.Join(dir, "pg_hba.conf"), []byte(access), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"SET password_encryption = 'scram-sha-256'", "CREATE USER " + s.user + " SUPERUSER PASSWORD '" + s.password + "'",
		"ALTER SYSTEM SET ssl_cert_file = '" + filepath.Join(dir, "server.crt") + "'",
		"ALTER SYSTEM SET ssl_key_file = '" + filepath.Join(dir, "server.key") + "'",
		"ALTER SYSTEM SET ssl_ca_file = '" + filepath.Join(dir, "ca.crt") + "'",
		"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()",
	} {
		if _, err := admin.Exec(t.Context(), statement).ReadAll(); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for ssl := ""; ssl != "on"; { // the server reloads later
		rows, err := admin.Exec(t.Context(), "SHOW ssl").ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		ssl = string(rows[0].Rows[0][0])
	}
	s.properties = map[string]string{postgres.PropDatabase: "postgres"}
	s.check(func() database.Database { return postgres.New() }, addr)
}

// copyToServer copies files to a directory of a database's server, which runs without rights.
func (s secured) copyToServer(dir string, names ...string) {
	s.t.Helper()
	const nobody = 65534
	for _, name := range names {
		to := filepath.Join(dir, name)
		if err := os.WriteFile(to, []byte(s.read(s.file(name))), 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Chown(to, nobody, nobody); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestAccessToMariaDB starts the server of a stopped cluster again, with TLS and without the cluster.
func TestAccessToMariaDB(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.Installed(galera.Recipe))
	nodes := testhost.Loopback(t, 1)
	c, err := dbtest.TryStart(t, galera.New(), database.Env{Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	addr := c.Properties()["mysql.hosts"]
	host, _, _ := net.SplitHostPort(addr)
	s := newSecured(t, host)
	config := mysqldriver.NewConfig()
	config.User, config.Net, config.Addr = "skerry", "tcp", addr
	connector, err := mysqldriver.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	admin := sql.OpenDB(connector)
	for _, statement := range []string{
		"CREATE USER 'secured'@'%' IDENTIFIED BY '" + s.password + "' REQUIRE X509", "GRANT ALL ON ycsb.* TO 'secured'@'%'",
	} {
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	admin.Close()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(nodes[0].Dir(), galera.Name)
	s.copyToServer(dir, "server.crt", "server.key", "ca.crt")
	in, err := galera.New().Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(in.Programs["mariadbd"], "--defaults-file="+filepath.Join(dir, "my.cnf"), "--wsrep-on=OFF", "--wsrep-provider=none",
		"--ssl-cert="+filepath.Join(dir, "server.crt"), "--ssl-key="+filepath.Join(dir, "server.key"), "--ssl-ca="+filepath.Join(dir, "ca.crt"))
	cmd.Env, cmd.Dir = append(cmd.Environ(), in.Env...), filepath.Join(dir, "data")
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	s.start(addr, cmd)
	s.check(func() database.Database { return galera.New() }, addr)
}

// TestClientsUseTLS: the first bytes of clients whose servers are not tested above are in TLS, with the clients' certificate.
func TestClientsUseTLS(t *testing.T) {
	s := newSecured(t, "127.0.0.1")
	t.Setenv(passwordVariable, s.password)
	pair, err := tls.LoadX509KeyPair(s.file("server.crt"), s.file("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(s.read(s.file("ca.crt"))))
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, NextProtos: []string{"h2"}}
	for _, a := range Registry() {
		want, ok := map[string]string{"valkey": s.password, "mongodb": "skerry", "ferretdb": "skerry", "cassandra": ""}[a.Name]
		if !ok {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			l, err := tls.Listen("tcp", "127.0.0.1:0", config)
			if err != nil {
				t.Fatal(err)
			}
			heard := make(chan string)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var serving sync.WaitGroup
			serving.Go(func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					serving.Go(func() {
						defer conn.Close()
						first := make([]byte, 4096)
						n, _ := conn.Read(first) // a connection that only tests the port sends nothing
						select {
						case heard <- string(first[:n]):
						case <-ctx.Done():
						}
					})
				}
			})
			serving.Go(func() {
				_, err := s.external(a.New(), l.Addr().String(), s.access()).Start(ctx, database.Env{Scratch: t.TempDir()})
				if err == nil {
					t.Error("the server accepts connections")
				}
			})
			for found := false; !found; {
				select {
				case first := <-heard:
					found = first != "" && strings.Contains(first, want)
				case <-ctx.Done():
					t.Fatalf("no client sent %q in TLS", want)
				}
			}
			cancel()
			l.Close()
			serving.Wait()
		})
	}
}
