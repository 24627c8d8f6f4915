#!/usr/bin/env bash
# Compares the fake of cmd.exe (shell.py) with Wine's, for command lines as Regatta sends them: words, standard input and exit code. Started by
# hand; it needs Debian's wine, wine64 and gcc-mingw-w64-x86-64.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'WINEPREFIX=$work/wine wineserver -k; rm -rf "$work"' EXIT
export WINEPREFIX=$work/wine WINEDEBUG=-all
cd "$work"

# A program that shows its words, as Microsoft's C runtime splits them, and one that starts cmd.exe as OpenSSH on Windows does.
cat >words.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    char line[100];
    for (int at = 1; at < count; at++) printf("[%s]\n", words[at]);
    if (fgets(line, sizeof line, stdin)) printf("input %s", line);
    return atoi(words[1]);
}
C
cat >start.c <<'C'
#include <stdio.h>
#include <windows.h>
int main(int count, char **words) {
    static char line[10000], command[11000];
    FILE *file = fopen(words[1], "rb");
    line[fread(line, 1, sizeof line - 1, file)] = 0;
    sprintf(command, "\"c:\\windows\\system32\\cmd.exe\" /c \"%s\"", line);
    STARTUPINFOA start = {sizeof start};
    PROCESS_INFORMATION process;
    DWORD code;
    if (!CreateProcessA(NULL, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) return 99;
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    printf("code %lu\n", code);
    return 0;
}
C
x86_64-w64-mingw32-gcc words.c -o words.exe
x86_64-w64-mingw32-gcc start.c -o start.exe
gcc words.c -o words
wine cmd /c exit
python='C:\Program Files\Python\python.exe'
mkdir -p "wine/drive_c/Program Files/Python" fake/drives
cp words.exe "wine/drive_c/Program Files/Python/python.exe"
cp "$here/shell.py" fake/
cp words "fake/drives/$python"

different=0
while IFS= read -r line; do
    printf '%s' "$line" >line.txt
    echo hello | wine start.exe line.txt | tr -d '\r' >theirs
    { echo hello | python3 fake/shell.py -c "$line" || code=$?; echo "code ${code:-0}"; } >ours
    unset code
    if cmp -s theirs ours; then echo "same: $line"; else
        echo "DIFFERENT: $line"
        diff theirs ours || different=1
    fi
done <<LINES
echo %OS% \$env:OS
"$python" "5" "import sys;exec(sys.stdin.buffer.read(int(sys.argv.pop(1))))" "a & b|c<d>e^f (g)" "it's" ""
"$python" "0" "C:/Users/some one/tmp" "C:\\power-dev/ptd_client_server/server.py" "-c"
"$python" "0" "C:\\directory\\\\"
"$python" "0" "%OS%" "%UNKNOWN%"
LINES
exit $different
