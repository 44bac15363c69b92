// Package contracts holds our Solidity sources with their compiled artifacts.
//
//	src/*.sol        the sources
//	artifacts/*.json what solc made of them, committed; Hardhat's artifact format
//
// scripts/compile-contracts.sh recompiles them with a pinned solc from npm (EVM version "paris", so that old chains run them).
// The bytecode depends on the sources alone: a recompilation that changes an artifact means that somebody forgot one.
//
// Pactwire is the pin contract of a network of members, SimpleStorage the one of the quick start, Zoo has one of
// everything an ABI can express and is for tests.
package contracts

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

//go:embed artifacts/*.json
var files embed.FS

// Artifact is a compiled contract.
type Artifact struct {
	Name     string
	JSON     []byte          // the whole artifact file
	ABI      json.RawMessage // as the compiler wrote it
	Parsed   abi.ABI         // the same, ready to encode and decode
	Bytecode []byte          // what is deployed, before the constructor's arguments
}

// The contracts. Each is read at its first use.
var (
	Pactwire      = sync.OnceValue(func() Artifact { return read("Pactwire") })
	SimpleStorage = sync.OnceValue(func() Artifact { return read("SimpleStorage") })
	Zoo           = sync.OnceValue(func() Artifact { return read("Zoo") })
)

// read panics on a broken artifact: it is part of the binary, and the tests read every one.
func read(name string) Artifact {
	text, err := files.ReadFile("artifacts/" + name + ".json")
	if err != nil {
		panic(fmt.Sprintf("read the artifact %s: %v", name, err))
	}
	artifact, err := Parse(text)
	if err != nil {
		panic(fmt.Sprintf("read the artifact %s: %v", name, err))
	}
	return artifact
}

// Parse reads an artifact file in Hardhat's format.
func Parse(text []byte) (Artifact, error) {
	var file struct {
		ContractName string          `json:"contractName"`
		ABI          json.RawMessage `json:"abi"`
		Bytecode     hexutil.Bytes   `json:"bytecode"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return Artifact{}, fmt.Errorf("parse the artifact: %w", err)
	}
	parsed, err := abi.JSON(bytes.NewReader(file.ABI))
	if err != nil {
		return Artifact{}, fmt.Errorf("parse the artifact's ABI: %w", err)
	}
	return Artifact{Name: file.ContractName, JSON: text, ABI: file.ABI, Parsed: parsed, Bytecode: file.Bytecode}, nil
}

// DeployData is the data of the transaction that deploys the contract with these constructor arguments, given as Go values
// the way go-ethereum's abi package takes them.
func (a Artifact) DeployData(args ...any) ([]byte, error) {
	packed, err := a.Parsed.Pack("", args...)
	if err != nil {
		return nil, fmt.Errorf("encode the constructor arguments of %s: %w", a.Name, err)
	}
	return append(bytes.Clone(a.Bytecode), packed...), nil
}
