import { AppError } from '@perch/contracts';
import type { Run } from '../verb.ts';

const scripts: Record<string, string> = {
  bash: `_perch() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(perch __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _perch perch`,
  zsh: `#compdef perch
_perch() {
  local -a found
  found=("\${(@f)$(perch __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if (( \${#found} )) && [[ -n "\${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _perch perch`,
  fish: `function __perch_complete
  set -l words (commandline -opc) (commandline -ct)
  perch __complete -- $words[2..-1] 2>/dev/null
end
complete -c perch -f -a '(__perch_complete)'`,
};

export const run: Run = async (_invocation, [shell]) => {
  const script = scripts[shell as string];
  if (!script)
    throw new AppError('invalid', `there is no completion for "${shell}"; wants ${Object.keys(scripts).join(', ')}`);
  return { value: { shell, script }, text: () => script };
};
