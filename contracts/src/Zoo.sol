// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @title Every kind of parameter, return, event and failure that an ABI can have. For tests only.
contract Zoo {
    enum Colour { Red, Green, Blue }

    struct Point { int256 x; int256 y; }

    struct Animal { string name; Point[] track; bytes4 tag; Colour colour; bool[2] flags; }

    type Price is uint128;

    error Plain();
    error Denied(address who, uint256 needed, string why);
    error Nested(Point where, uint256[] list);

    event Nothing();
    event Words(uint256 a, string b);
    event Ints(int8 a, int64 b, int256 c, uint8 d, uint64 e, uint256 f);
    event AllIndexed(address indexed a, uint256 indexed b, bytes32 indexed c);
    event IndexedDynamic(string indexed text, bytes indexed data, uint256[] indexed list, string clear);
    event IndexedTuple(Point indexed at, Animal animal);
    event Lists(uint256[] a, uint256[2][] b, Point[] c, string[] d);
    event Text(string text);
    event Blob(bytes blob, bytes4 four, bool yes, Colour colour, Price price);
    event Unnamed(uint256, address indexed, string);
    event Over(uint256 value);
    event Over(string value);
    event Counted(uint256 indexed index, uint256 total);
    event Paid(address indexed from, uint256 value, bytes data);
    event Claimed(uint256 indexed id, address by);
    event Anonymous(uint256 indexed a, uint256 b) anonymous;
    event AnonymousFour(uint256 indexed a, uint256 indexed b, uint256 indexed c, uint256 indexed d) anonymous;

    string public name;
    mapping(uint256 id => address by) public claimed;
    mapping(uint256 => mapping(address => uint256)) public grid;
    uint256[] public numbers;
    uint256 private sink;

    constructor(string memory name_) payable {
        name = name_;
        numbers.push(7);
    }

    receive() external payable {
        emit Paid(msg.sender, msg.value, "");
    }

    fallback(bytes calldata data) external payable returns (bytes memory) {
        emit Paid(msg.sender, msg.value, data);
        return data;
    }

    // Values there and back.

    function echoInts(int8 a, int16 b, int64 c, int128 d, int256 e)
        external pure returns (int8 a_, int16 b_, int64 c_, int128 d_, int256 e_)
    {
        return (a, b, c, d, e);
    }

    function echoUints(uint8 a, uint24 b, uint64 c, uint128 d, uint256 e)
        external pure returns (uint8 a_, uint24 b_, uint64 c_, uint128 d_, uint256 e_)
    {
        return (a, b, c, d, e);
    }

    function echoBytes(bytes1 a, bytes4 b, bytes32 c, bytes calldata d)
        external pure returns (bytes1 a_, bytes4 b_, bytes32 c_, bytes memory d_)
    {
        return (a, b, c, d);
    }

    function echoString(string calldata a) external pure returns (string memory) {
        return a;
    }

    function echoBool(bool a) external pure returns (bool) {
        return a;
    }

    function echoAddress(address a) external pure returns (address) {
        return a;
    }

    function echoColour(Colour a) external pure returns (Colour) {
        return a;
    }

    function echoPrice(Price a) external pure returns (Price) {
        return a;
    }

    function echoFunction(function(uint256) external returns (uint256) a)
        external pure returns (function(uint256) external returns (uint256))
    {
        return a;
    }

    function echoList(uint256[] calldata a) external pure returns (uint256[] memory) {
        return a;
    }

    function echoFixed(uint8[3] calldata a) external pure returns (uint8[3] memory) {
        return a;
    }

    function echoMatrix(int256[][] calldata a) external pure returns (int256[][] memory) {
        return a;
    }

    function echoMixed(uint16[][2] calldata a, uint16[2][] calldata b)
        external pure returns (uint16[][2] memory a_, uint16[2][] memory b_)
    {
        return (a, b);
    }

    function echoStrings(string[] calldata a) external pure returns (string[] memory) {
        return a;
    }

    function echoPoint(Point calldata at) external pure returns (Point memory) {
        return at;
    }

    function echoAnimal(Animal calldata animal) external pure returns (Animal memory) {
        return animal;
    }

    function echoAnimals(Animal[] calldata animals) external pure returns (Animal[] memory) {
        return animals;
    }

    function echoPoints(Point[2][] calldata a) external pure returns (Point[2][] memory) {
        return a;
    }

    // Overloads; unnamed and awkwardly named parameters.

    function over() external pure returns (string memory) {
        return "over()";
    }

    function over(uint256) external pure returns (string memory) {
        return "over(uint256)";
    }

    function over(string calldata) external pure returns (string memory) {
        return "over(string)";
    }

    function over(uint256, string calldata) external pure returns (string memory) {
        return "over(uint256,string)";
    }

    function over(Point calldata) external pure returns (string memory) {
        return "over((int256,int256))";
    }

    function unnamed(uint256, uint256 second, uint256) external pure returns (uint256) {
        return second;
    }

    function underscored(uint256 _a, uint256 a, uint256 input, uint256 output) external pure returns (uint256) {
        return _a + a + input + output;
    }

    // Returns.

    function returnNothing() external pure {}

    function returnUnnamed() external pure returns (uint256, string memory, bool) {
        return (1, "two", true);
    }

    function returnNamed() external pure returns (uint256 first, string memory second) {
        return (1, "two");
    }

    function returnMixed() external pure returns (uint256 first, string memory, bool) {
        return (1, "two", true);
    }

    function returnText(bytes calldata raw) external pure returns (string memory) {
        return string(raw);
    }

    function whoCalls() external view returns (address sender, uint256 blockNumber, uint256 balance) {
        return (msg.sender, block.number, address(this).balance);
    }

    // Failures.

    function failWith(string calldata reason) external pure returns (uint256) {
        revert(reason);
    }

    function failSilently() external pure returns (uint256) {
        revert();
    }

    function failPlain() external pure returns (uint256) {
        revert Plain();
    }

    function failDenied(uint256 needed, string calldata why) external view returns (uint256) {
        revert Denied(msg.sender, needed, why);
    }

    function failNested(int256 x, int256 y, uint256[] calldata list) external pure returns (uint256) {
        revert Nested(Point(x, y), list);
    }

    function failAssert() external pure returns (uint256) {
        assert(false);
        return 0;
    }

    function failDivision(uint256 by) external pure returns (uint256) {
        return 1 / by;
    }

    function failOverflow(uint8 a) external pure returns (uint8) {
        return a + 255;
    }

    function failIndex(uint256 at) external view returns (uint256) {
        return numbers[at];
    }

    function failRaw(bytes calldata data) external pure returns (uint256) {
        bytes memory copy = data;
        assembly {
            revert(add(copy, 32), mload(copy))
        }
    }

    function failInvalid() external pure returns (uint256) {
        assembly {
            invalid()
        }
    }

    /// @notice The first one wins: estimates of two claims at once both succeed, and the second transaction reverts when mined.
    function claim(uint256 id) external {
        if (claimed[id] != address(0)) revert Denied(claimed[id], id, "claimed already");
        claimed[id] = msg.sender;
        emit Claimed(id, msg.sender);
    }

    /// @notice Succeeds while estimated at the given head, and reverts in the block after it.
    function notAfter(uint256 blockNumber) external {
        if (block.number > blockNumber) revert Denied(msg.sender, blockNumber, "too late");
        emit Counted(block.number, blockNumber);
    }

    function burnGas(uint256 loops) external {
        for (uint256 i = 0; i < loops; i++) {
            sink = uint256(keccak256(abi.encode(sink, i)));
        }
    }

    // Money.

    function pay(bytes calldata data) external payable {
        emit Paid(msg.sender, msg.value, data);
    }

    function putGrid(uint256 row, uint256 value) external {
        grid[row][msg.sender] = value;
    }

    // Events.

    function emitMany(uint256 n) external {
        for (uint256 i = 0; i < n; i++) {
            emit Counted(i, n);
        }
    }

    function emitText(bytes calldata raw) external {
        emit Text(string(raw));
    }

    function emitWords(uint256 a, string calldata b) external {
        emit Words(a, b);
    }

    function emitInts(int8 a, int64 b, int256 c, uint8 d, uint64 e, uint256 f) external {
        emit Ints(a, b, c, d, e, f);
    }

    function emitAnimal(Animal calldata animal) external {
        emit IndexedTuple(Point(1, -1), animal);
    }

    /// @notice One of each kind, in the order in which they are declared.
    function emitAll() external {
        uint256[] memory list = new uint256[](2);
        (list[0], list[1]) = (1, type(uint256).max);
        emit Nothing();
        emit Words(42, "forty-two");
        emit Ints(type(int8).min, type(int64).min, type(int256).min, type(uint8).max, type(uint64).max, type(uint256).max);
        emit AllIndexed(msg.sender, 1, bytes32("one"));
        emit IndexedDynamic("text", hex"00ff", list, "clear");
        emitNested(list);
        emit Text(string(abi.encodePacked(hex"6f6bff00fe")));
        emit Blob(hex"00ff10", 0x01020304, true, Colour.Blue, Price.wrap(9));
        emit Unnamed(5, msg.sender, "five");
        emit Over(uint256(1));
        emit Over(string("one"));
        emit Counted(0, 1);
        emit Anonymous(1, 2);
        emit AnonymousFour(1, 2, 3, 4);
    }

    function emitNested(uint256[] memory list) private {
        Animal memory animal;
        animal.name = "Emu";
        animal.track = new Point[](1);
        animal.track[0] = Point(-1, 2);
        animal.tag = 0xdeadbeef;
        animal.colour = Colour.Green;
        animal.flags = [true, false];
        emit IndexedTuple(Point(3, -4), animal);
        uint256[2][] memory pairs = new uint256[2][](1);
        pairs[0] = [uint256(8), 9];
        string[] memory words = new string[](2);
        (words[0], words[1]) = ("", "w");
        emit Lists(list, pairs, animal.track, words);
    }

    /// @notice A log with the topic of Words and data that no ABI decoder can read.
    function emitMalformed(bytes calldata data) external {
        bytes32 topic = Words.selector;
        bytes memory copy = data;
        assembly {
            log1(add(copy, 32), mload(copy), topic)
        }
    }
}
