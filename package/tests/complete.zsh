# Whether zsh completes a command: zsh -f complete.zsh. It types into a zsh of its own and reads the line.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; autoload -U compinit; compinit -u -D; print loaded=$_comps[millstream]'
said=
for try in {1..100}; do
  zpty -r -t shell more && said+=$more
  [[ $said == *loaded=_millstream* ]] && break
  sleep 0.2
done
[[ $said == *loaded=_millstream* ]] || { print -r -- "not loaded: $said"; exit 1 }
said=
zpty -wn shell $'millstream host doc\t'
for try in {1..100}; do
  zpty -r -t shell more && said+=$more
  [[ $said == *"host doctor"* ]] && exit 0
  sleep 0.2
done
print -r -- "the line: $said"
exit 1
