package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// maxArtifact bounds an artifact file: the standard JSON output of a large project.
const maxArtifact = 256 << 20

// artifact is a compiled contract.
type artifact struct {
	name     string
	abi      json.RawMessage
	bytecode []byte
}

// readArtifact reads a contract from a file of Hardhat, Foundry or Truffle (one contract), or from solc's --combined-json or standard JSON output (many): name
// then says which one, and may be left out where only one can be deployed.
func readArtifact(path, name string) (artifact, error) {
	info, err := os.Stat(path)
	if err != nil {
		return artifact{}, fmt.Errorf("read the artifact: %w", err)
	}
	if info.Size() > maxArtifact {
		return artifact{}, fmt.Errorf("read the artifact: %s is larger than %d MiB", path, maxArtifact>>20)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return artifact{}, fmt.Errorf("read the artifact: %w", err)
	}
	all, err := parseArtifact(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return artifact{}, fmt.Errorf("read the artifact %s: %w", path, err)
	}
	return choose(all, name, path)
}

// compiled has the fields of one contract in each of the formats.
type compiled struct {
	ContractName string          `json:"contractName"`
	ABI          json.RawMessage `json:"abi"`
	Bytecode     json.RawMessage `json:"bytecode"` // Hardhat, Truffle: hex; Foundry: an object with hex
	Bin          *string         `json:"bin"`      // solc --combined-json
	EVM          *struct {
		Bytecode struct {
			Object string `json:"object"`
		} `json:"bytecode"`
	} `json:"evm"` // solc, standard JSON
}

type contracts map[string]func() (artifact, error)

func parseArtifact(text []byte) (contracts, error) {
	var file struct {
		compiled
		Contracts map[string]json.RawMessage `json:"contracts"`
		Errors    []struct {
			Severity string `json:"severity"`
			Message  string `json:"formattedMessage"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	found := contracts{}
	if file.ABI != nil {
		found[file.ContractName] = file.read(file.ContractName)
		return found, nil
	}
	for unit, raw := range file.Contracts {
		var one compiled
		if err := json.Unmarshal(raw, &one); err == nil && one.ABI != nil {
			found[unit] = one.read(unit) // --combined-json: "file.sol:Name"
			continue
		}
		var many map[string]compiled
		if err := json.Unmarshal(raw, &many); err != nil {
			return nil, fmt.Errorf("contracts of %s: %w", unit, err)
		}
		for name, c := range many {
			found[unit+":"+name] = c.read(unit + ":" + name)
		}
	}
	for _, e := range file.Errors {
		if e.Severity == "error" && len(found) == 0 {
			return nil, fmt.Errorf("the compiler refused it: %s", strings.TrimSpace(e.Message))
		}
	}
	if len(found) == 0 {
		return nil, errors.New(`it holds neither "abi" with "bytecode" nor "contracts"; it must come from solc, Hardhat or Foundry`)
	}
	return found, nil
}

// read is put off until the contract is chosen: a file may hold others that cannot be deployed.
func (c compiled) read(name string) func() (artifact, error) {
	return func() (artifact, error) {
		code, err := c.code()
		if err != nil {
			return artifact{}, fmt.Errorf("contract %s: %w", name, err)
		}
		abi := c.ABI
		if quoted := ""; json.Unmarshal(abi, &quoted) == nil && quoted != "" {
			abi = json.RawMessage(quoted) // old versions of solc
		}
		_, short, found := cutLast(name, ":")
		if !found {
			short = name
		}
		return artifact{name: short, abi: abi, bytecode: code}, nil
	}
}

func (c compiled) code() ([]byte, error) {
	text := ""
	var foundry struct {
		Object string `json:"object"`
	}
	switch {
	case c.Bin != nil:
		text = *c.Bin
	case c.EVM != nil:
		text = c.EVM.Bytecode.Object
	case json.Unmarshal(c.Bytecode, &text) == nil:
	case json.Unmarshal(c.Bytecode, &foundry) == nil:
		text = foundry.Object
	default:
		return nil, errors.New("it has no bytecode")
	}
	text = strings.TrimPrefix(text, "0x")
	if text == "" {
		return nil, errors.New("it has no bytecode: an interface or an abstract contract cannot be deployed")
	}
	if strings.Contains(text, "__") {
		return nil, errors.New("its bytecode still needs the address of a library; link it first")
	}
	code, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("its bytecode is no hex: %w", err)
	}
	return code, nil
}

func choose(all contracts, name, path string) (artifact, error) {
	var names []string
	for full := range all {
		_, short, _ := cutLast(full, ":")
		if name == "" || name == full || name == short {
			names = append(names, full)
		}
	}
	slices.Sort(names)
	if len(names) == 1 {
		return all[names[0]]()
	}
	if name != "" && len(all) == 1 {
		for only := range all {
			return artifact{}, fmt.Errorf("%s holds the contract %q, not %q", path, only, name)
		}
	}
	if len(names) == 0 {
		for full := range all {
			names = append(names, full)
		}
		slices.Sort(names)
		return artifact{}, fmt.Errorf("%s holds no contract %q; it has %s", path, name, strings.Join(names, ", "))
	}
	var good []artifact
	var goodNames []string
	for _, n := range names {
		if a, err := all[n](); err == nil {
			good, goodNames = append(good, a), append(goodNames, n)
		}
	}
	if len(good) == 1 {
		return good[0], nil
	}
	return artifact{}, fmt.Errorf("%s holds several contracts; say which one with --contract: %s", path, strings.Join(goodNames, ", "))
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return "", s, false
}
