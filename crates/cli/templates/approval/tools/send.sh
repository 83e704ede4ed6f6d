# Takes the arguments as one JSON object on stdin, acts, and answers on stdout.
cat >> sent.log
echo >> sent.log
echo '{"sent": true}'
