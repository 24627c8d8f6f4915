#!/usr/bin/python3
# A fake of a Windows login's shell, started by sshd as `shell -c LINE`: cmd.exe, or PowerShell where the file PowerShell is beside it.
#
# It does what Windows does with the command lines that Regatta sends, and refuses all others. OpenSSH on Windows starts
# cmd.exe /c "LINE", and PowerShell with -c and LINE as one argument. Programs split their command line themselves. When the shell ends,
# Windows ends what it has started (a job object). Drive C: is a link in the current directory, and a program's name may have backslashes.
import ctypes, os, re, signal, subprocess, sys, time

PLACE = os.path.dirname(os.path.abspath(sys.argv[0]))
VARIABLES = {"OS": "Windows_NT"}
IS_POWERSHELL = os.path.exists(os.path.join(PLACE, "PowerShell"))
LONGEST = 8191  # cmd.exe


def refuse(why):
    print(why, file=sys.stderr)
    sys.exit(1)


def split(line):
    """Splits a command line as Microsoft's C runtime does: backslashes count only before a quotation mark."""
    words, word, quoted, at = [], None, False, 0
    while at < len(line):
        character = line[at]
        backslashes = len(line[at:]) - len(line[at:].lstrip("\\"))
        if backslashes:
            at += backslashes
            is_mark = line[at : at + 1] == '"'
            word = (word or "") + "\\" * (backslashes // 2 if is_mark else backslashes)
            if is_mark and backslashes % 2:
                word += '"'
                at += 1
        elif character == '"':
            word, quoted, at = word or "", not quoted, at + 1
        elif character in " \t" and not quoted:
            if word is not None:
                words.append(word)
            word, at = None, at + 1
        else:
            word, at = (word or "") + character, at + 1
    return words + ([] if word is None else [word])


def cmd(line):
    if len(line) > LONGEST:
        refuse("The command line is too long.")
    # cmd.exe ends at the first line end, and expands variables also within quotation marks.
    line = line.split("\n")[0]
    line = re.sub("%([^%]+)%", lambda found: VARIABLES.get(found[1].upper(), found[0]), line)
    if re.search("[&|<>^()]", re.sub('"[^"]*"', "", line)):
        refuse("not simulated: " + line)
    if line.startswith("echo "):
        print(line[5:])
        return 0
    return run(split(line))


def powershell(line):
    words = []
    for statement in re.findall(r"(?:'(?:''|[^'])*'|[^';])+", line):
        statement = statement.strip()
        if statement == "exit $LASTEXITCODE":
            return code
        if statement.startswith("echo "):
            for word in statement.split()[1:]:
                print(re.sub(r"\$env:(\w+)", lambda found: VARIABLES.get(found[1].upper(), ""), word))
            code = 0
        elif re.fullmatch(r"& ('(''|[^'])*' ?)+", statement):
            words = [word.replace("''", "'") for word in re.findall(r"'((?:''|[^'])*)'", statement)]
            # Windows PowerShell 5.1 leaves empty words out, and quotes those with spaces without changing what they have.
            code = run(split(" ".join('"%s"' % word if " " in word else word for word in words)))
        else:
            refuse("not simulated: " + statement)
    return min(code, 1)


def children(of):
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % entry) as file:
                if int(file.read().rpartition(")")[2].split()[1]) == of:
                    found.append(int(entry))
        except OSError:
            pass  # it has ended
    return found


def run(words):
    sys.stdout.flush()
    try:
        program = subprocess.Popen(words)
    except OSError:
        refuse("'%s' is not recognized as an internal or external command,\noperable program or batch file." % words[0])
    code = program.wait()
    while children(os.getpid()):
        for pid in children(os.getpid()):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return code if code >= 0 else 128 - code


line = sys.argv[2]
if line == os.path.join(PLACE, "sftp.py"):
    os.execv(line, [line])  # the subsystem, which Windows also starts through the shell
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what a program leaves behind becomes a child of this shell
os.chdir(os.path.join(PLACE, "drives"))
os.environ["PATH"] = os.getcwd() + os.pathsep + os.environ["PATH"]
os.environ["TEMP"] = "C:/home/AppData/Local/Temp"
os.makedirs(os.environ["TEMP"], exist_ok=True)
sys.exit(powershell(line) if IS_POWERSHELL else cmd(line))
