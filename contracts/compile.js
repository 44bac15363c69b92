// Compiles src/*.sol to artifacts/*.json; called by scripts/compile-contracts.sh.
'use strict';
const fs = require('fs');
const path = require('path');
const solc = require('solc');

const root = process.argv[2];
const files = fs.readdirSync(path.join(root, 'src')).filter((name) => name.endsWith('.sol')).sort();
const input = {
  language: 'Solidity',
  sources: Object.fromEntries(files.map((name) => [name, {content: fs.readFileSync(path.join(root, 'src', name), 'utf8')}])),
  settings: {
    evmVersion: 'paris', // no PUSH0, so that chains that never took the Shanghai fork run it too
    optimizer: {enabled: true, runs: 200},
    metadata: {bytecodeHash: 'none'}, // the bytecode then depends on the code alone, not on its comments
    outputSelection: {'*': {'*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object']}},
  },
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
for (const message of output.errors || []) {
  console.error(message.formattedMessage);
}
if ((output.errors || []).some((message) => message.severity === 'error')) {
  process.exit(1);
}
fs.mkdirSync(path.join(root, 'artifacts'), {recursive: true});
for (const name of files) {
  for (const [contractName, contract] of Object.entries(output.contracts[name])) {
    const artifact = {
      _format: 'hh-sol-artifact-1',
      contractName,
      sourceName: 'contracts/src/' + name,
      abi: contract.abi,
      bytecode: '0x' + contract.evm.bytecode.object,
      deployedBytecode: '0x' + contract.evm.deployedBytecode.object,
      linkReferences: {},
      deployedLinkReferences: {},
    };
    fs.writeFileSync(path.join(root, 'artifacts', contractName + '.json'), JSON.stringify(artifact, null, 2) + '\n');
    console.log(contractName, (contract.evm.deployedBytecode.object.length / 2) + ' bytes');
  }
}
