package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

func (c *config) pki(name string) string { return c.path("pki", name) }

// identity is a certificate to be issued. The common name is the user and the
// organisation the group that the apiserver sees.
type identity struct {
	file, user, group string
	addresses         []string // non-empty: for a server, which is reached here
	names             []string
}

// ensurePKI issues everything once. The key of each authority stays in memory
// only as long as needed but is kept on disk: the controller-manager signs
// certificate requests with it.
func (c *config) ensurePKI() error {
	if _, err := os.Stat(c.pki("done")); err == nil {
		return nil
	}
	ca, err := c.newAuthority("ca", "shed-cluster-ca")
	if err != nil {
		return err
	}
	for _, id := range c.identities() {
		if err := ca.issue(c, id); err != nil {
			return err
		}
	}
	// The aggregation layer trusts whoever holds a certificate of this second
	// authority to name any user, so it must not be the first one.
	front, err := c.newAuthority("front-proxy-ca", "shed-front-proxy-ca")
	if err != nil {
		return err
	}
	if err := front.issue(c, identity{file: "front-proxy", user: "front-proxy-client"}); err != nil {
		return err
	}
	if err := c.newServiceAccountKeys(); err != nil {
		return err
	}
	return writeFile(c.pki("done"), nil, 0o644)
}

func (c *config) identities() []identity {
	ids := []identity{
		{file: "apiserver", user: "kube-apiserver",
			addresses: []string{"127.0.0.1", c.hostIP(), c.serviceIP(1)},
			names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local"}},
		{file: "apiserver-kubelet", user: "kube-apiserver-kubelet-client", group: "system:masters"},
		{file: "admin", user: "shed-admin", group: "system:masters"},
		{file: "controller-manager", user: "system:kube-controller-manager"},
		{file: "scheduler", user: "system:kube-scheduler"},
		{file: "proxy", user: "system:kube-proxy"},
	}
	if c.Mode != modeReal {
		return ids
	}
	for i, node := range c.nodes() {
		user := "system:node:" + node
		ids = append(ids,
			identity{file: node, user: user, group: "system:nodes"},
			identity{file: node + "-serving", user: user, group: "system:nodes",
				addresses: []string{c.nodeIP(i)}, names: []string{node}})
	}
	return ids
}

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func (c *config) newAuthority(file, name string) (*authority, error) {
	template := newTemplate(name)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := c.writePair(file, template, template, key, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key}, err
}

func (a *authority) issue(c *config, id identity) error {
	template := newTemplate(id.user)
	if id.group != "" {
		template.Subject.Organization = []string{id.group}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.DNSNames = id.names
	for _, address := range id.addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	_, err = c.writePair(id.file, template, a.certificate, key, a.key)
	return err
}

func newTemplate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		// Back-dated, so that a clock set back a little does no harm.
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().AddDate(10, 0, 0),
	}
}

func (c *config) writePair(file string, template, parent *x509.Certificate, key, signer crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	if err := writePEM(c.pki(file+".crt"), "CERTIFICATE", der, 0o644); err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return der, writePEM(c.pki(file+".key"), "PRIVATE KEY", private, 0o600)
}

// newServiceAccountKeys makes the pair that signs and checks pods' tokens.
func (c *config) newServiceAccountKeys() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(c.pki("service-account.key"), "EC PRIVATE KEY", private, 0o600); err != nil {
		return err
	}
	return writePEM(c.pki("service-account.pub"), "PUBLIC KEY", public, 0o644)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

// writeKubeconfig puts the certificates into the file, so that the file alone
// can be copied to wherever it is needed.
func (c *config) writeKubeconfig(path, identity string) error {
	read := func(name string) []byte {
		text, err := os.ReadFile(c.pki(name))
		if err != nil {
			return nil
		}
		return text
	}
	text := render(kubeconfigText, map[string]any{
		"Server": c.apiURL(), "Name": "shed-" + c.id,
		"CA": read("ca.crt"), "Cert": read(identity + ".crt"), "Key": read(identity + ".key"),
	})
	return writeFile(path, text, 0o600)
}
