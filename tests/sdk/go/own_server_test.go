// A server of the test's own, for behaviour that options switch on.

package sdk

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const (
	ownAccount = "devstoreaccount1"
	ownKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// ownServer starts a server with these options and returns its endpoints. It must stop well when the test ends.
func ownServer(t *testing.T, options ...string) (tables, queues string) {
	t.Helper()
	program := os.Getenv("LAZULITE_SERVER")
	if program == "" {
		t.Skip("LAZULITE_SERVER names the server's program; `cargo xtask test` sets it")
	}
	where := []string{"serve", "--location", t.TempDir(), "--tablePort", "0", "--queuePort", "0", "--no-admin", "--silent"}
	server := exec.Command(program, append(where, options...)...)
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !strings.HasSuffix(name, "_ACCOUNTS") {
			server.Env = append(server.Env, variable)
		}
	}
	server.Stderr = os.Stderr
	output, err := server.StdoutPipe()
	must(t, err)
	must(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			t.Errorf("the server did not stop well: %v", err)
		}
	})
	for lines := bufio.NewScanner(output); (tables == "" || queues == "") && lines.Scan(); {
		if _, url, found := strings.Cut(lines.Text(), "Table service is successfully listening at "); found {
			tables = strings.TrimSuffix(url, "/") + "/" + ownAccount
		}
		if _, url, found := strings.Cut(lines.Text(), "Queue service is successfully listening at "); found {
			queues = strings.TrimSuffix(url, "/") + "/" + ownAccount
		}
	}
	if tables == "" || queues == "" {
		t.Fatal("the server ended before it was ready")
	}
	return tables, queues
}
