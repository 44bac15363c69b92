package main

import (
	"bufio"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// keyFolder is where the verbs of `key` keep keys.
type keyFolder struct {
	path, passwordFile string
}

func newKey() *cobra.Command {
	cmd := &cobra.Command{
		Use: "key", Short: "Make, import and list signing keys",
		Long: "Signing keys are kept as encrypted Ethereum keystore files (scrypt), which `pactwire serve --keystore FOLDER --password-file FILE` opens; one password\n" +
			"opens all keys of a folder.",
	}
	var f keyFolder
	cmd.PersistentFlags().StringVar(&f.path, "keystore", "keystore", "`folder` of the key files")
	cmd.PersistentFlags().StringVar(&f.passwordFile, "password-file", "", "`file` with the password in its first line (default: it is asked for)")
	cmd.AddCommand(newKeyNew(&f), newKeyImport(&f), newKeyList(&f))
	return cmd
}

func newKeyNew(f *keyFolder) *cobra.Command {
	return &cobra.Command{
		Use: "new", Short: "Make a new key and print its address", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := crypto.GenerateKey()
			if err != nil {
				return fmt.Errorf("make a key: %w", err)
			}
			return f.add(cmd, key)
		},
	}
}

func newKeyImport(f *keyFolder) *cobra.Command {
	return &cobra.Command{
		Use: "import FILE", Short: "Import a private key and print its address", Args: usage(cobra.ExactArgs(1)),
		Long: "Import a private key: 64 hex digits in the first line of FILE, or - to read it from the standard input. It is not taken from the command line, where\n" +
			"others could see it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var text string
			var err error
			if args[0] == "-" {
				text, err = secret(cmd, "Private key: ")
			} else {
				text, err = firstLine(args[0])
			}
			if err != nil {
				return fmt.Errorf("read the private key: %w", err)
			}
			key, err := crypto.HexToECDSA(strings.TrimPrefix(strings.TrimSpace(text), "0x"))
			if err != nil {
				return errors.New("read the private key: it must be 64 hex digits") // the key itself is not repeated
			}
			return f.add(cmd, key)
		},
	}
}

func newKeyList(f *keyFolder) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the keys of the folder: address and file", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Stat(f.path); err != nil {
				return fmt.Errorf("list the keys: %w", err)
			}
			for _, account := range f.open().Accounts() {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", account.Address.Hex(), filepath.Base(account.URL.Path)); err != nil {
					return fmt.Errorf("list the keys: %w", err)
				}
			}
			return nil
		},
	}
}

func (f *keyFolder) open() *keystore.KeyStore {
	return keystore.NewKeyStore(f.path, keystore.StandardScryptN, keystore.StandardScryptP)
}

// add writes the key into the folder.
func (f *keyFolder) add(cmd *cobra.Command, key *ecdsa.PrivateKey) error {
	password, err := f.password(cmd)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return fmt.Errorf("make the folder of the keys: %w", err)
	}
	account, err := f.open().ImportECDSA(key, password)
	if errors.Is(err, keystore.ErrAccountAlreadyExists) {
		return fmt.Errorf("the key of %s is in %s already", crypto.PubkeyToAddress(key.PublicKey), f.path)
	}
	if err != nil {
		return fmt.Errorf("store the key: %w", err)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), account.Address.Hex())
	return err //nolint:wrapcheck // a broken output
}

func (f *keyFolder) password(cmd *cobra.Command) (string, error) {
	if f.passwordFile != "" {
		line, err := firstLine(f.passwordFile)
		if err == nil && line == "" {
			err = fmt.Errorf("the first line of %s is empty", f.passwordFile)
		}
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return line, nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return "", usageError{errors.New("give the password with --password-file; there is no terminal to ask at")}
	}
	first, err := secret(cmd, "Password: ")
	if err != nil {
		return "", err
	}
	again, err := secret(cmd, "Password again: ")
	switch {
	case err != nil:
		return "", err
	case first != again:
		return "", errors.New("the two passwords differ")
	case first == "":
		return "", errors.New("the password must not be empty")
	}
	return first, nil
}

// secret asks at the terminal without showing what is typed; without a terminal it reads a line.
func secret(cmd *cobra.Command, prompt string) (string, error) {
	if in := int(os.Stdin.Fd()); term.IsTerminal(in) {
		fmt.Fprint(cmd.ErrOrStderr(), prompt)
		text, err := term.ReadPassword(in)
		fmt.Fprintln(cmd.ErrOrStderr())
		if err != nil {
			return "", fmt.Errorf("read from the terminal: %w", err)
		}
		return string(text), nil
	}
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", fmt.Errorf("read from the standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func firstLine(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err //nolint:wrapcheck // it names the file
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}
